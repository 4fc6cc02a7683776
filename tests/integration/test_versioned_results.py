"""Versioned tasks on a real Prefect: results are found again, unless they were damaged."""

from pathlib import Path

import pytest
from prefect import flow
from rich.console import Console

from infra.context import RunContext, blobs, set_run_context
from infra.progress.progress import Display
from infra.settings import settings
from infra.tracking.tracker import Tracker
from schemas.records import Reference
from tasks.running.versioned import versioned_task
from tests.fresh import use_home

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", autouse=True)
def prefect():
    from prefect.testing.utilities import prefect_test_harness  # slow: not at each collection of tests

    with prefect_test_harness(server_startup_timeout=180):
        yield


@pytest.fixture
def home(tmp_path, monkeypatch):
    use_home(tmp_path, monkeypatch)
    set_run_context(RunContext("cycle-1", "recipe", Tracker(settings(), "cycle-1", {}), Display(Console(quiet=True))))
    yield tmp_path
    use_home(tmp_path, monkeypatch)


def counting():
    runs: list[int] = []

    @versioned_task
    def double(number: int) -> Reference:
        from infra.context import objects

        runs.append(number)
        return objects().put(str(2 * number).encode(), "file")

    @flow
    def once(number: int) -> Reference:
        return double(number)

    return once, runs


def test_a_result_is_taken_over_by_the_next_flow(home):
    once, runs = counting()
    assert once(1) == once(1)
    assert runs == [1]
    assert once(2) != once(1)
    assert runs == [1, 2]


@pytest.mark.parametrize("damage", [lambda b: bytes([b[0] ^ 1]) + b[1:], lambda b: b[:-40], lambda b: b""])
def test_a_damaged_result_is_made_again(home, damage):
    once, runs = counting()
    made = once(1)
    (key,) = blobs().keys("results/")
    stored = Path(blobs().root) / key
    stored.write_bytes(damage(stored.read_bytes()))
    assert once(1) == made
    assert once(1) == made
    assert runs == [1, 1]


def test_a_result_whose_object_is_gone_is_made_again(home):
    once, runs = counting()
    made = once(1)
    Path(made.uri).unlink()
    assert once(1) == made
    assert runs == [1, 1]
