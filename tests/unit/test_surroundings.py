"""Surroundings of a command: what would mislead it is changed, and said."""

import os
import subprocess
import sys
import tempfile

import httpx
import pytest

from infra import surroundings
from infra.surroundings import changes, settle, use_proxies_as_clients_can
from schemas.errors import InputError
from tests.command_line import COMMAND

LOOPBACK = "localhost,127.0.0.1,::1"


@pytest.fixture(autouse=True)
def own_surroundings(monkeypatch):
    """Let a test change variables and the umask, and begin with none of those that are looked at."""
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(surroundings, "_changes", [])
    for name in [*os.environ]:
        if name.lower().endswith("_proxy") or name.startswith(("MLFLOW_", "PREFECT_")):
            del os.environ[name]
    umask = os.umask(0o022)
    yield
    os.umask(umask)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, None),
        ({"http_proxy": "http://p"}, LOOPBACK),
        ({"HTTPS_PROXY": "http://p", "NO_PROXY": "intra.net, localhost"}, "intra.net,localhost,127.0.0.1,::1"),
        ({"all_proxy": "http://p", "no_proxy": "*"}, "*"),
        (
            {"http_proxy": "http://p", "no_proxy": "localhost,[::1],10.0.0.0/8,fe80::/10"},
            "localhost,::1,10.0.0.0/8,127.0.0.1",
        ),
        ({"no_proxy": "[fe80::1],fe80::/10"}, "fe80::1"),
    ],
)
def test_loopback_is_exempt_from_proxies(given, expected):
    os.environ.update(given)
    use_proxies_as_clients_can()
    assert os.environ.get("no_proxy") == expected
    assert os.environ.get("NO_PROXY", expected) == expected
    httpx.Client().close()


@pytest.mark.parametrize("proxy", ["socks5h://127.0.0.1:9", "ftp://p", "http://p:port"])
def test_a_proxy_that_clients_cannot_use_is_left_out_and_named(proxy):
    os.environ.update(all_proxy=proxy, HTTPS_PROXY="http://p")
    use_proxies_as_clients_can()
    httpx.Client().close()
    assert "all_proxy" not in os.environ
    assert os.environ["HTTPS_PROXY"] == "http://p"
    assert changes()[0].startswith("all_proxy is not used")


def test_an_exemption_that_clients_cannot_read_is_named():
    os.environ["no_proxy"] = "intra.net,fe80::/10"
    use_proxies_as_clients_can()
    assert changes() == ["no_proxy is not used for fe80::/10: name hosts, domains or IPv4"]


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({"MLFLOW_RUN_ID": "1", "MLFLOW_TRACKING_USERNAME": "ann"}, {"MLFLOW_TRACKING_USERNAME"}),
        ({"PREFECT_HOME": "/proc", "PREFECT_API_KEY": "k", "PREFECT_LOGGING_LEVEL": "INFO"}, {"PREFECT_LOGGING_LEVEL"}),
        ({"PREFECT_SERVER_API_AUTH_STRING": "a:b", "PREFECT_TASKS_REFRESH_CACHE": "true"}, set()),
        ({"PREFECT_API_URL": "http://p/api", "PREFECT_API_KEY": "k"}, {"PREFECT_API_URL", "PREFECT_API_KEY"}),
    ],
)
def test_variables_of_other_work_are_not_used(given, left):
    os.environ.update(given)
    settle()
    assert {name for name in os.environ if name in given} == left
    gone = sorted(given.keys() - left)
    assert changes() == ([f"{', '.join(gone)} of other work are not used"] if gone else [])


def test_files_of_this_folder_that_set_up_prefect_are_named(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]")
    (tmp_path / ".env").write_text("TOKEN=1")
    settle()
    assert changes() == []
    (tmp_path / ".env").write_text("PREFECT_API_URL=http://p/api")
    (tmp_path / "prefect.toml").touch()
    settle()
    assert "settings from .env and prefect.toml here" in changes()[0]


def test_a_working_folder_that_is_gone_is_refused(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(InputError, match="the working folder was removed"):
        settle()


def test_a_folder_for_temporary_files_is_found(monkeypatch, tmp_path):
    os.environ["TMPDIR"] = str(tmp_path)
    settle()
    assert (os.environ["TMPDIR"], changes()) == (str(tmp_path), [])
    for unusable in (str(tmp_path / "gone"), "/proc"):
        monkeypatch.setattr(tempfile, "tempdir", None)
        os.environ["TMPDIR"] = unusable
        settle()
        assert os.path.isdir(os.environ["TMPDIR"])
        assert os.environ["TMPDIR"] != unusable
    assert "TMPDIR is no folder" in changes()[0]


@pytest.mark.parametrize(("given", "used"), [(0o077, 0o077), (0o277, 0o077), (0o777, 0o077)])
def test_files_can_be_read_by_who_wrote_them(given, used):
    os.umask(given)
    settle()
    assert os.umask(0) == used
    assert [one.startswith(f"the umask {given:03o}") for one in changes()] == [True] * (given != used)


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}]
)
def test_text_is_utf8_in_any_locale(tmp_path, locale):
    variables = {**os.environ, "DREAMGYM_HOME": str(tmp_path), **locale}
    said = subprocess.run([COMMAND, "recipes"], env=variables, capture_output=True, check=True)
    assert b"textworld-tiny" in said.stdout


def test_a_locale_without_utf8_begins_the_command_anew_once(monkeypatch):
    begun = []
    monkeypatch.setattr(surroundings.locale, "getpreferredencoding", lambda do_setlocale: "ISO-8859-1")
    monkeypatch.setattr(os, "execve", lambda *given: begun.append(given))
    surroundings.read_text_as_utf8()
    [(program, arguments, variables)] = begun
    assert (program, arguments[1:], variables["PYTHONUTF8"]) == (sys.executable, sys.orig_argv[1:], "1")
