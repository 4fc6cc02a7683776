"""Calls in processes of this machine: what they answer, how they fail, and that they end with us."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from infra.running.processes import end_processes, in_processes
from infra.settings import Settings
from schemas.errors import DataError, EngineError
from tests.integration.answering import answer
from tests.left_processes import workers_of
from tests.patient import until

pytestmark = pytest.mark.integration
TWO = Settings(num_threads=2)


@pytest.fixture(autouse=True)
def ended():
    """End the processes of each test."""
    yield
    end_processes()


def asked(*payloads: str) -> list[tuple[str, str]]:
    """Return what each payload was answered, and the process that answered."""
    answers = in_processes(TWO, answer, [payload.encode() for payload in payloads])
    return [(said, pid) for said, pid in (one.decode().split() for one in answers)]


def test_answers_come_in_order_and_a_place_keeps_its_process():
    first = asked("a", "b", "c")
    assert [said for said, _ in first] == ["a", "b", "c"]
    (_, one), (_, other), (_, again) = first
    assert one == again != other
    assert asked("d", "e") == [("d", one), ("e", other)]


def test_processes_share_the_threads():
    assert in_processes(Settings(num_threads=6), answer, [b"threads", b"threads"]) == [b"3 3", b"3 3"]
    assert in_processes(Settings(num_threads=3), answer, [b"threads"] * 3) == [b"1 1"] * 3


def test_an_error_keeps_its_class_and_message():
    with pytest.raises(DataError, match=r"^no such rows$"):
        asked("a", "refuse")
    with pytest.raises(RuntimeError, match=r"ZeroDivisionError: by nothing(.|\n)*answering.py"):
        asked("fail")
    assert asked("a")[0][0] == "a", "others take the place of those that were ended"


def test_a_process_that_dies_is_an_error_that_says_what_to_do():
    with pytest.raises(EngineError, match=r"died \(exit code 7\).*DREAMGYM_NUM_THREADS=1.*same command again"):
        asked("a", "die")


def test_one_that_died_meanwhile_is_replaced():
    (_, one), (_, other) = asked("a", "b")
    psutil.Process(int(one)).kill()
    psutil.wait_procs([psutil.Process(int(one))], timeout=10)
    assert {said for said, _ in asked("c", "d")} == {"c", "d"}
    assert other in {pid for _, pid in asked("e", "f")}


def test_an_interrupt_ends_them_all(tmp_path):
    begun = tmp_path / "begun"

    def interrupted(_num_done: int) -> None:
        if begun.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_processes(TWO, answer, [f"touch {begun}".encode(), b"a"], interrupted)
    assert workers_of(os.getpid()) == []


SCRIPT = """
from pathlib import Path
from infra.running.processes import in_processes
from infra.settings import Settings
from tests.integration.answering import answer

with Path("runs.txt").open("a") as file:
    file.write("once ")
in_processes(Settings(num_threads=2), answer, [b"touch begun", b"touch begun"])
"""


def test_a_script_runs_once_and_its_processes_end_when_it_is_killed(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    script = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, env=environment)
    until((tmp_path / "begun").exists, 60)
    assert (tmp_path / "runs.txt").read_text() == "once "
    working = workers_of(script.pid)
    assert len(working) == 2
    script.send_signal(signal.SIGKILL)
    script.wait()
    _, alive = psutil.wait_procs(working, timeout=10)
    assert alive == []
