"""An event is answered by one flow run, however often it is delivered."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from flows import scheduled
from infra.orchestration.announcements import POLICY_PROMOTED, TRANSITIONS_COMMITTED, claim
from schemas.recipes.recipe import Recipe

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("home")]


def test_of_ten_deliveries_one_is_answered_and_its_retry_too():
    with ThreadPoolExecutor(10) as deliveries:
        answered = list(deliveries.map(lambda run: claim(TRANSITIONS_COMMITTED, "a" * 64, f"run {run}"), range(10)))
    assert sum(answered) == 1
    winner = f"run {answered.index(True)}"
    assert claim(TRANSITIONS_COMMITTED, "a" * 64, winner), "a run that crashed and is retried goes on"
    assert claim(TRANSITIONS_COMMITTED, "b" * 64, "run 99")
    assert claim(POLICY_PROMOTED, "a" * 64, "run 99")


def test_a_second_delivery_runs_no_cycle(monkeypatch):
    runs: list[str] = []
    monkeypatch.setattr(scheduled, "run_recipe", lambda *_: runs.append("ran") or {"run_id": "c"})
    for _ in range(3):
        claim(TRANSITIONS_COMMITTED, "d" * 64, "another run")
        assert "another run" in scheduled.refit.fn(Recipe(name="r"), "d" * 64)
    assert runs == []
    assert scheduled.refit.fn(Recipe(name="r")) == "c"
