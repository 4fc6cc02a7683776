"""Judge a candidate against the starting policy, and promote it if the gate lets it through.

in:  two evaluations on the same real tasks
out: the verdict as an immutable gate.json; a registry version with aliases
"""

import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from infra.doors import cycle, objects
from infra.registry import CHALLENGER, CHAMPION, REAL_CANDIDATE, Registry
from infra.settings import settings
from models.gate import GateOptions, gain_over, judge
from schemas.recipe import GateRecipe, digest_of
from schemas.records import Reference
from tasks.versioned import versioned_task


@versioned_task(version=1)
def judge_candidate(
    candidate: Reference,
    evaluation: dict[str, Any],
    baseline: Reference,
    baseline_evaluation: dict[str, Any],
    recipe: GateRecipe,
    champion: Reference | None = None,
    champion_evaluation: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The gate's verdict with the digests of all it rests on.

    Args:
        candidate: The policy that would be promoted.
        evaluation: Its evaluation, from the task `evaluate`.
        baseline: The policy it must beat.
        baseline_evaluation: On the same tasks.
        recipe: Thresholds.
        champion: The policy that would be replaced, if there is one.
        champion_evaluation: On the same tasks.
    """
    verdict = judge(
        evaluation["successes"],
        baseline_evaluation["successes"],
        evaluation["families"],
        evaluation["outcome_agreement"],
        evaluation["dream_real_gap"],
        GateOptions(**recipe.model_dump()),
    )
    over_champion = (
        asdict(gain_over(champion_evaluation["successes"], evaluation["successes"])) if champion_evaluation else None
    )
    gate = {
        "candidate": candidate.sha256,
        "baseline": baseline.sha256,
        "evaluated_tasks": digest_of(sorted(evaluation["successes"])),
        "thresholds": recipe.model_dump(mode="json"),
        "champion": champion.sha256 if champion else "",
        "gain_over_champion": over_champion,
        **asdict(verdict),
    }
    gate["report"] = objects().put_json(gate, "gate")
    return gate


def present_champion() -> Reference | None:
    """The policy that the champion alias points at. Not cached: it may have moved since."""
    return Registry(settings()).behind(CHAMPION)


def promote(candidate: Reference, gate: dict[str, Any]) -> str:
    """Register the candidate with its gate, and let the aliases point at it if it passed. Returns the version.

    A champion that did as well or better on the same tasks stays. Not cached: aliases may have moved since.
    """
    registry = Registry(settings())
    run_id = cycle().tracker.parent.info.run_id
    tags = {
        "gate": "passed" if gate["passed"] else "refused",
        "gate_sha256": gate["report"].sha256,
        "cycle_id": cycle().cycle_id,
    }
    version = registry.register(candidate, run_id, tags)
    registry.point(CHALLENGER, version)
    if gate["passed"]:
        registry.point(REAL_CANDIDATE, version)
        if gate["gain_over_champion"] is None or gate["gain_over_champion"]["mean"] > 0:
            registry.point(CHAMPION, version)
        else:
            cycle().display.say("the champion did as well or better on the same tasks, so it stays")
    _attach(gate)
    return version


def register_fine_tuned(policy: Reference, promoted: Reference, promoted_version: str) -> str:
    """Register what sim-to-real made of a promoted policy. It gets no alias: no gate has judged it.

    Where no group taught anything it is the promoted policy still, and so is its version.
    """
    if policy.sha256 == promoted.sha256:
        return promoted_version
    tags = {"gate": "not judged", "fine_tuned_from": promoted_version, "cycle_id": cycle().cycle_id}
    return Registry(settings()).register(policy, cycle().tracker.parent.info.run_id, tags)


def _attach(gate: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gate.json"
        path.write_text(json.dumps({k: v for k, v in gate.items() if k != "report"}, indent=2, sort_keys=True))
        cycle().tracker.cycle().log_artifact(path)
