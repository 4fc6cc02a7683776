"""Promotion on a real MLflow registry: who becomes champion, and who stays."""

import pytest
from rich.console import Console

from infra.doors import Cycle, begin
from infra.progress import Display
from infra.registry import CHALLENGER, REAL_CANDIDATE, Registry
from infra.settings import settings
from infra.tracking import Tracker
from schemas.records import Reference
from tasks.promote import present_champion, promote, register_fine_tuned


def policy(name: str) -> Reference:
    return Reference(f"objects/{name}", name * 64, "model")


def gate(passed: bool, over_champion: float | None = None) -> dict:
    gain = None if over_champion is None else {"mean": over_champion, "low": -1.0, "high": 1.0}
    return {"passed": passed, "gain_over_champion": gain, "report": Reference("objects/g", "9" * 64, "gate")}


@pytest.fixture
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("DREAMGYM_HOME", str(tmp_path))
    settings.cache_clear()
    begin(Cycle("cycle-1", "recipe", Tracker(settings(), "cycle-1", {}), Display(Console(quiet=True))))
    yield Registry(settings())
    settings.cache_clear()


@pytest.mark.integration
def test_only_who_passes_and_beats_the_champion_becomes_champion(registry):
    assert present_champion() is None
    promote(policy("a"), gate(passed=False))
    assert present_champion() is None
    assert registry.behind(CHALLENGER).sha256 == "a" * 64
    promote(policy("b"), gate(passed=True))
    assert present_champion().sha256 == "b" * 64
    promote(policy("c"), gate(passed=True, over_champion=-0.01))
    assert present_champion().sha256 == "b" * 64, "a better champion stays"
    assert registry.behind(REAL_CANDIDATE).sha256 == "c" * 64
    promote(policy("c"), gate(passed=True, over_champion=0.02))
    assert present_champion().sha256 == "c" * 64


@pytest.mark.integration
def test_what_sim_to_real_made_is_a_version_of_its_own_and_no_champion(registry):
    promoted = promote(policy("a"), gate(passed=True))
    assert register_fine_tuned(policy("a"), policy("a"), promoted) == promoted
    assert registry._client.get_model_version("dreamgym-policy", promoted).tags["gate"] == "passed"
    tuned = register_fine_tuned(policy("b"), policy("a"), promoted)
    version = registry._client.get_model_version("dreamgym-policy", tuned)
    assert (version.tags["sha256"], version.tags["fine_tuned_from"]) == ("b" * 64, promoted)
    assert present_champion().sha256 == "a" * 64


@pytest.mark.integration
def test_a_policy_is_one_version_and_says_what_its_latest_gate_said(registry):
    first = promote(policy("a"), gate(passed=False))
    assert promote(policy("a"), gate(passed=True)) == first
    version = registry._client.get_model_version("dreamgym-policy", first)
    assert version.tags["gate"] == "passed"
