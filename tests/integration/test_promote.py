"""Promotion on a real MLflow registry and a real ledger: becoming, staying and returning as champion."""

import contextlib
import sqlite3
from pathlib import Path

import pytest
from rich.console import Console

from infra.context import RunContext, ledger, objects, registry, set_run_context
from infra.progress.progress import Display
from infra.promotion.registry import CHALLENGER, CHAMPION, REAL_CANDIDATE
from infra.settings import settings
from infra.tracking.tracker import Tracker
from schemas.errors import ConflictError, GateRefused, InputError, IntegrityError, StorageError
from schemas.ledger import Decision
from schemas.recipes.judging import GateRecipe
from schemas.records import Reference
from schemas.runs import NOT_PROVEN
from tasks.judging.on_logs.judge_unproven import judge_unproven
from tasks.judging.promote import (
    champion_to_beat,
    decline,
    is_in_force,
    is_open,
    present_champion,
    promote,
    record_judgement,
    roll_back,
)
from tests.fresh import use_home

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    use_home(tmp_path, monkeypatch)
    set_run_context(RunContext("cycle-1", "recipe", Tracker(settings(), "cycle-1", {}), Display(Console(quiet=True))))
    yield tmp_path
    use_home(tmp_path, monkeypatch)


def policy(name: str) -> Reference:
    return objects().put_json({"weights": objects().put(name.encode(), "file").sha256}, "model")


def judged(candidate: Reference, champion: Reference | None = None, objection: str = "", worse: str = "") -> dict:
    """Record and return a gate as the task produces it."""
    report = {
        "candidate": candidate.sha256,
        "champion": champion.sha256 if champion else "",
        "passed": not objection,
        "reasons": [objection] if objection else [],
        "over_champion": {"reasons": [worse] if worse else []} if champion else None,
    }
    gate = {**report, "report": objects().put_json(report, "gate")}
    record_judgement(candidate, gate)
    return gate


def promoted(candidate: Reference, champion: Reference | None = None, **more) -> bool:
    return promote(candidate, judged(candidate, champion)["report"], "me", **more)


def alias(name: str) -> str | None:
    behind = registry().behind(name)
    return behind.sha256 if behind else None


def test_only_who_passes_and_is_no_worse_becomes_champion():
    a, b, c = policy("a"), policy("b"), policy("c")
    assert present_champion() is None
    with pytest.raises(GateRefused, match="no gain"):
        promote(a, judged(a, objection="no gain")["report"], "me")
    assert (alias(CHALLENGER), alias(REAL_CANDIDATE), alias(CHAMPION)) == (a.sha256, None, None)
    assert promoted(b)
    assert (alias(CHALLENGER), alias(REAL_CANDIDATE), alias(CHAMPION)) == (b.sha256,) * 3
    with pytest.raises(GateRefused, match="against the champion, lost"):
        promote(c, judged(c, b, worse="lost")["report"], "me")
    assert (alias(REAL_CANDIDATE), alias(CHAMPION)) == (c.sha256, b.sha256), "c may be fine-tuned, b stays"
    assert promoted(c, b)
    assert present_champion().sha256 == alias(CHAMPION) == c.sha256
    assert not promoted(c), "it is champion already"


def test_a_gate_against_another_champion_promotes_nobody():
    a, b = policy("a"), policy("b")
    gate = judged(b)
    assert promoted(a)
    with pytest.raises(ConflictError, match="was judged against champion none"):
        promote(b, gate["report"], "me")
    assert present_champion().sha256 == a.sha256


def test_a_gate_of_another_policy_promotes_nobody():
    a, b = policy("a"), policy("b")
    with pytest.raises(InputError, match="not"):
        promote(b, judged(a)["report"], "me")


@pytest.mark.parametrize("part", ["gate", "manifest", "weights"])
def test_one_flipped_bit_promotes_nobody(part):
    a = policy("a")
    gate = judged(a)
    weights = objects().get_json(a)["weights"]
    uri = {
        "gate": gate["report"].uri,
        "manifest": a.uri,
        "weights": str(Path(a.uri).parents[1] / weights[:2] / weights),
    }
    damaged = Path(uri[part])
    content = damaged.read_bytes()
    damaged.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(IntegrityError):
        promote(a, gate["report"], "me")
    assert present_champion() is None


SHOWN = {
    **{"next_state_f1": 0.9, "unchanged_f1": 0.4, "neighbour_f1": 0.8, "outcome_agreement": 0.95},
    **{"gain_over_unchanged_low": 0.4, "gain_over_neighbour_low": 0.05},
}
"""Measurements of an experience model on held-out logs to which nothing is objected."""


@pytest.mark.parametrize(
    ("measured", "objection"),
    [
        ({}, ""),
        ({"gain_over_neighbour_low": 0.0}, "nearest logged transition: word F1 0.90 beside 0.80"),
        ({"gain_over_unchanged_low": -0.1}, "stays as it is: word F1 0.90 beside 0.40"),
        ({"outcome_agreement": 0.8}, "only 80.0% of held-out logged episodes"),
    ],
)
def test_only_a_person_promotes_what_is_not_proven_for_real_and_overrules_nothing_else(measured, objection):
    start, candidate = policy("start"), policy("candidate")
    lost, won = ({"dreamt_successes": {str(task): success for task in range(8)}} for success in (0.0, 1.0))
    verdict = judge_unproven.__wrapped__(candidate, won, start, lost, SHOWN | measured, GateRecipe())
    record_judgement(candidate, verdict)
    with pytest.raises(GateRefused, match="not proven for real"):
        promote(candidate, verdict["report"], "me")
    if objection:
        with pytest.raises(GateRefused, match=objection):
            promote(candidate, verdict["report"], "me", unproven=True)
        assert present_champion() is None
    else:
        assert promote(candidate, verdict["report"], "me", unproven=True)
        assert alias(CHAMPION) == candidate.sha256


def test_a_dreamt_gain_that_may_be_none_is_an_objection():
    dreamt = {"dreamt_successes": {"a": 1.0, "b": 0.0}}
    verdict = judge_unproven.__wrapped__(policy("b"), dreamt, policy("a"), dreamt, SHOWN, GateRecipe())
    assert verdict["reasons"] == [NOT_PROVEN, "dreamt gain +0.0% may be as low as +0.0%, which is not above +0.0%"]
    excused = judge_unproven.__wrapped__(policy("b"), dreamt, policy("a"), dreamt, SHOWN, GateRecipe(margin=1))
    assert excused["reasons"] == [NOT_PROVEN]


def test_a_rollback_brings_back_the_champion_before_and_keeps_the_other_away():
    a, b = policy("a"), policy("b")
    with pytest.raises(InputError, match="no champion"):
        roll_back("me", "why not")
    promoted(a)
    promoted(b, a)
    roll_back("me", "b is rude")
    assert present_champion().sha256 == alias(CHAMPION) == a.sha256
    with pytest.raises(GateRefused, match="rolled back before"):
        promoted(b, a)
    assert promoted(b, a, again=True)
    roll_back("me", "b is still rude")
    roll_back("me", "a is, too")
    assert present_champion() is None
    assert alias(CHAMPION) is None
    decisions = [entry.decision for entry in ledger().history().entries if entry.decision is not Decision.JUDGED]
    assert [str(d) for d in decisions] == ["promoted"] * 2 + ["rolled back", "promoted"] + ["rolled back"] * 2


def test_what_a_person_declined_is_no_candidate_for_the_real_environment():
    a, b = policy("a"), policy("b")
    judged(a)
    decline(b, judged(b)["report"], "ann", "it is rude")
    assert present_champion() is None
    assert (alias(CHALLENGER), alias(REAL_CANDIDATE)) == (b.sha256, a.sha256)
    last = ledger().history().entries[-1]
    assert (str(last.decision), last.by, last.reason) == ("declined", "ann", "it is rude")


def test_a_person_is_asked_once_about_a_judgement():
    a, b = policy("a"), policy("b")
    gate = judged(a)["report"]
    assert is_open(a, gate)
    decline(a, gate, "ann", "not today")
    assert not is_open(a, gate)
    num_entries = len(ledger().history().entries)
    decline(a, gate, "bob", "not today either")
    assert len(ledger().history().entries) == num_entries, "it is declined already"
    assert promote(a, gate, "ann")
    second = judged(b, a)["report"]
    assert is_open(b, second)
    promote(b, second, "ann")
    assert not is_open(b, second), "it is champion"
    assert not is_open(a, judged(a, b)["report"]), "it was promoted, though another champion succeeded it"
    roll_back("ann", "b is rude")
    assert not is_open(b, second), "it was rolled back"


def test_a_rollback_to_a_damaged_policy_is_refused():
    a, b = policy("a"), policy("b")
    promoted(a)
    promoted(b, a)
    Path(a.uri).write_bytes(b"{}")
    with pytest.raises(IntegrityError):
        roll_back("me", "b is rude")
    assert present_champion().sha256 == b.sha256


def test_aliases_that_a_crash_left_behind_are_put_right():
    a, b = policy("a"), policy("b")
    promoted(a)
    promoted(b, a)
    registry()._point(CHAMPION, registry().register(a))
    registry()._client.delete_registered_model_alias("dreamgym-policy", CHALLENGER)
    assert present_champion().sha256 == b.sha256
    assert (alias(CHAMPION), alias(CHALLENGER)) == (b.sha256, b.sha256)


def test_what_the_ledger_took_holds_though_the_registry_cannot_show_it(home, caplog):
    a = policy("a")
    gate = judged(a)["report"]
    with contextlib.closing(sqlite3.connect(home / "mlflow.db")) as database:
        database.execute("ALTER TABLE registered_model_aliases RENAME TO mislaid")
        assert promote(a, gate, "me")
        database.execute("ALTER TABLE mislaid RENAME TO registered_model_aliases")
    assert "behind the ledger" in caplog.text
    assert alias(CHAMPION) is None
    assert present_champion().sha256 == alias(CHAMPION) == a.sha256


def test_a_judgement_is_recorded_once():
    a = policy("a")
    gate = judged(a)
    record_judgement(a, gate)
    assert len(ledger().history().entries) == 1


def test_what_sim_to_real_made_is_a_version_of_its_own_and_says_what_it_goes_on_from():
    a, b = policy("a"), policy("b")
    promoted(a)
    version = registry().register(a)
    gate = judged(b, a)
    tuned = registry()._client.get_model_version("dreamgym-policy", record_judgement(b, gate, fine_tuned_from=version))
    assert (tuned.tags["sha256"], tuned.tags["fine_tuned_from"]) == (b.sha256, version)
    assert registry()._client.get_model_version("dreamgym-policy", version).tags["gate"] == "passed"
    assert present_champion().sha256 == a.sha256


def test_a_run_that_is_resumed_judges_against_the_champion_of_its_first_judgement():
    a, b, c = policy("a"), policy("b"), policy("c")
    promoted(a)
    assert champion_to_beat(b).sha256 == a.sha256
    assert promoted(b, a)
    assert champion_to_beat(b).sha256 == a.sha256, "b is champion itself by now"
    assert promoted(c, b)
    assert champion_to_beat(b).sha256 == a.sha256, "c, which the same run made from it, is no rival"
    assert champion_to_beat(b, anew=True).sha256 == c.sha256
    assert is_in_force(b)
    roll_back("me", "c is rude")
    assert is_in_force(b)
    assert not is_in_force(c)


def test_a_champion_whose_objects_are_gone_is_told_and_nobody_is_judged_against_it():
    a, b = policy("a"), policy("b")
    promoted(a)
    Path(a.uri).unlink()
    with pytest.raises(StorageError, match=r"policy .* is no longer whole.*dreamgym rollback"):
        champion_to_beat(b)
