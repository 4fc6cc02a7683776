"""Promotion and rollback by command: quick where a verdict is known, and never without a champion by mistake."""

import os
import pty
import subprocess
import sys

import pytest
from rich.console import Console

from flows.promotion.promote_run import promote_run
from infra.context import RunContext, ledger, objects, set_run_context
from infra.progress.progress import Display
from infra.settings import settings
from infra.tracking.tracker import Tracker
from schemas.errors import GateRefused
from schemas.plain import plain
from schemas.records import Reference
from tasks.judging.promote import is_judged, promote, record_judgement
from tests.command_line import COMMAND, dreamgym, dreamgym_here, environment
from tests.stored_runs import finished_run

pytestmark = pytest.mark.integration
QUIET = Display(Console(quiet=True))


@pytest.fixture
def tracker(home):
    """Return the tracker of a run in progress."""
    tracker = Tracker(settings(), "cycle-1", {})
    set_run_context(RunContext("cycle-1", "recipe", tracker, QUIET))
    return tracker


def judged(name: str, champion: Reference | None = None, objection: str = "", run_id: str = "cycle-1") -> dict:
    """Return the summary of a run whose gate was recorded."""
    policy = objects().put_json({"weights": objects().put(name.encode(), "file").sha256}, "model")
    report = {
        "candidate": policy.sha256,
        "champion": champion.sha256 if champion else "",
        "passed": not objection,
        "reasons": [objection] if objection else [],
        "over_champion": {"reasons": []} if champion else None,
    }
    gate = {**report, "report": objects().put_json(report, "gate")}
    version = record_judgement(policy, gate)
    lineage = plain({"dream": policy})
    return finished_run(run_id, lineage=lineage, gate=plain(gate), versions={"dream": version})


def policy_of(summary: dict) -> Reference:
    return Reference(**summary["lineage"]["dream"]["__reference__"])


def gate_of(summary: dict) -> Reference:
    return Reference(**summary["gate"]["report"]["__reference__"])


def ends_of(tracker: Tracker) -> list:
    runs = tracker.client.search_runs([tracker.experiment_id])
    return [(run.info.run_id, run.info.status, run.info.end_time) for run in runs]


def test_a_recorded_verdict_promotes_and_no_run_in_mlflow_ends_anew(tracker):
    summary = judged("a")
    tracker.close("FINISHED")
    before = ends_of(tracker)
    assert promote_run(summary, None, QUIET).startswith("champion is now version 1 (")
    assert promote_run(summary, None, QUIET).endswith("is champion already")
    assert ends_of(tracker) == before
    assert ledger().history().champion == policy_of(summary)


def test_a_recorded_refusal_stands(tracker):
    with pytest.raises(GateRefused, match="no gain"):
        promote_run(judged("a", objection="no gain"), None, QUIET)
    assert ledger().history().champion is None


def test_a_verdict_counts_if_it_is_recorded_and_against_todays_champion(tracker):
    a = judged("a")
    b = judged("b")
    assert is_judged(policy_of(a), gate_of(a))
    assert is_judged(policy_of(b), gate_of(b))
    promote(policy_of(a), gate_of(a), "me")
    assert is_judged(policy_of(a), gate_of(a)), "it is champion itself"
    assert not is_judged(policy_of(b), gate_of(b)), "the champion is another one now"
    c = judged("c", policy_of(a))
    assert is_judged(policy_of(c), gate_of(c))
    unrecorded = objects().put_json({"champion": policy_of(a).sha256, "by": "nobody"}, "gate")
    assert not is_judged(policy_of(c), unrecorded)


def test_what_evaluates_policies_is_not_imported_to_promote_by_a_recorded_verdict(home):
    program = "import sys, flows.promotion.promote_run; print(sorted({'torch', 'prefect', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_promotes_without_prefect(home, tracker):
    judged("a")
    tracker.close("FINISHED")
    promoted = dreamgym(home, "promote")
    assert promoted.stdout.startswith("champion is now version 1 ("), promoted.stderr
    assert not (home / "prefect" / "prefect.db").exists()


def test_a_rollback_to_nobody_is_confirmed(home, tracker):
    summary = judged("a")
    promote(policy_of(summary), gate_of(summary), "me")
    refused = dreamgym_here(home, "rollback", "--reason", "to try")
    assert refused.returncode == 2
    assert "a rollback leaves none" in refused.stderr
    assert "--yes" in refused.stderr
    assert answered(home, "n") == 1
    assert ledger().history().champion == policy_of(summary)
    assert answered(home, "y") == 0
    assert ledger().history().champion is None


def test_a_rollback_to_nobody_goes_through_with_yes(home, tracker):
    summary = judged("a")
    promote(policy_of(summary), gate_of(summary), "me")
    done = dreamgym_here(home, "rollback", "--reason", "to try", "--yes")
    assert (done.returncode, done.stdout.strip()) == (0, "there is no champion any more")


def test_a_rollback_to_the_champion_before_asks_nothing(home, tracker):
    a = judged("a")
    promote(policy_of(a), gate_of(a), "me")
    b = judged("b", policy_of(a))
    promote(policy_of(b), gate_of(b), "me")
    done = dreamgym_here(home, "rollback", "--reason", "to try")
    assert done.stdout.strip() == f"champion is {policy_of(a).sha256[:12]} again", done.stderr


def test_a_rollback_to_a_run_brings_its_champion_back(home, tracker):
    of_run = {}
    for before, name in ((None, "a"), ("a", "b"), ("b", "c")):
        champion = policy_of(of_run[before]) if before else None
        of_run[name] = judged(name, champion, run_id=f"night-{name}")
        promote(policy_of(of_run[name]), gate_of(of_run[name]), "me")
    refused = dreamgym_here(home, "rollback", "night-c", "--reason", "to try")
    assert (refused.returncode, "it was not champion before the present one" in refused.stderr) == (2, True)
    done = dreamgym_here(home, "rollback", "night-a", "--reason", "to try")
    assert done.stdout.strip() == f"champion is {policy_of(of_run['a']).sha256[:12]} again", done.stderr
    assert ledger().history().withdrawn == {policy_of(of_run[name]).sha256 for name in "bc"}


def answered(home, answer: str) -> int:
    """Return the exit code of a rollback at a terminal at which this answer is typed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "rollback", "--reason", "to try"],
        env=environment(home),
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.write(ours, f"{answer}\n".encode())
    code = process.wait(timeout=120)
    os.close(ours)
    os.close(theirs)
    return code
