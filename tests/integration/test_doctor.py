"""The doctor finds what is wrong, and names it."""

import time
from types import SimpleNamespace

import pytest

from infra import health
from infra.health import findings
from infra.settings import Settings

pytestmark = pytest.mark.integration


def wrong(settings: Settings) -> dict[str, str]:
    return {finding.what: finding.detail for finding in findings(settings) if not finding.fine}


def test_an_empty_home_is_well(tmp_path):
    assert wrong(Settings(home=tmp_path)) == {}
    assert list((tmp_path / "objects").rglob("*.json")) == []


def test_a_server_that_is_away_is_named_soon_and_without_its_password(tmp_path):
    began = time.monotonic()
    found = wrong(Settings(home=tmp_path, tracking_uri="http://me:hush@127.0.0.1:9"))
    assert time.monotonic() - began < 60
    assert "http://127.0.0.1:9 does not answer" in found["MLflow"]
    assert "hush" not in repr(found)


def test_secrets_that_are_set_but_empty_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DREAMGYM_ENDPOINT_API_KEY", "")
    assert wrong(Settings(home=tmp_path))["secrets"].startswith("DREAMGYM_ENDPOINT_API_KEY is set but empty")


def test_a_disk_that_is_nearly_full_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(health, "_MIN_FREE_GIB", 2**40)
    assert "GiB free" in wrong(Settings(home=tmp_path))["disk"]


def test_a_home_that_cannot_be_written_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert {"home", "objects"} <= set(wrong(Settings(home=blocked / "home")))


def test_a_clock_that_is_wrong_is_named(tmp_path, monkeypatch):
    late = SimpleNamespace(headers={"date": "Mon, 01 Jan 2024 00:00:00 GMT"})
    monkeypatch.setattr(health.httpx, "get", lambda *_, **__: late)
    monkeypatch.setattr(health, "require_server", lambda *_: None)
    assert "synchronise them" in wrong(Settings(home=tmp_path, tracking_uri="http://127.0.0.1:9"))["MLflow"]
