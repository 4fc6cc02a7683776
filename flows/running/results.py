"""Results of a run as plain data, for the results table and `show --json`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flows.loop.lineage import Lineage
from infra.tracking.costs import CostTracker
from schemas.records import Reference
from schemas.runs import Judgement

_HEADLINE = (
    "outcome_agreement",
    "dream_real_gap",
    "seconds",
    "overhead_share",
    "endpoint_requests",
    "endpoint_tokens",
)


DREAM_TRAINING, REAL_TRAINING = (
    ("dream", "vary tasks", "value states", "step judge", "train dream", "task generator", "consolidation"),
    ("real rollouts", "train real", "consolidation"),
)
"""Stages in which a policy is trained: rollouts, generation of tasks, updates, consolidation."""


def training_seconds(stage_seconds: Mapping[str, float], stages: Sequence[str]) -> float:
    """Return the duration of a training, without evaluations."""
    return round(sum(stage_seconds.get(stage, 0.0) for stage in stages), 1)


def results_of(made: Lineage, time: CostTracker) -> dict[str, Any]:
    """Return real success with its interval, training interactions, and dream success of each policy of the run.

    Args:
        made: Lineage and measurements of the run.
        time: Costs of the run; storage, and time in which no stage was running, count as overhead.
    """
    results: dict[str, Any] = {
        name: policy_results(evaluation, made.real_interactions.get(name, 0))
        for name, evaluation in made.evaluations.items()
    }
    for measure in ("outcome_agreement", "state_agreement", "dream_real_gap"):
        results[measure] = made.evaluations["dream"][measure] if "dream" in made.evaluations else None
    results["offline_interactions"] = _offline(made)
    results["calibration_interactions"] = _measured(made.calibrations)
    results["evaluation_interactions"] = _measured(made.evaluations.values())
    results["seconds"] = round(seconds := time.seconds, 1)
    results["overhead_share"] = round(1 - time.working_seconds / seconds, 4)
    asked = time.endpoint_costs.values()
    results["endpoint_requests"] = sum(cost["num_requests"] for cost in asked)
    results["endpoint_tokens"] = sum(cost["num_prompt_tokens"] + cost["num_completion_tokens"] for cost in asked)
    return results


def headline(results: dict[str, Any]) -> dict[str, float]:
    """Return the few numbers that runs are compared by, as metrics of the run's own MLflow run."""
    by_policy = {
        f"{name}_{measure}": value[measure]
        for name, value in results.items()
        if isinstance(value, dict)
        for measure in ("real_success", "dream_success")
    }
    measured = {name: results[name] for name in _HEADLINE}
    return {name: float(value) for name, value in (by_policy | measured).items() if value is not None}


def gain_metrics(gate: Judgement | None) -> dict[str, float]:
    """Return the real gain over the starting policy with its interval, if the run was judged."""
    if not gate:
        return {}
    gain = gate["gain"]
    return {"gain": gain["mean"], "gain_low": gain["low"], "gain_high": gain["high"], "passed": float(gate["passed"])}


def lineage_tags(made: Lineage) -> dict[str, str]:
    """Return digests of data and models as tags of the run's own MLflow run, so that runs can be filtered by them."""
    made_of = {name: value if isinstance(value, list) else [value] for name, value in made.artifacts.plain().items()}
    return {f"lineage.{name}": " ".join(one.sha256[:16] for one in several) for name, several in made_of.items()}


def datasets(made: Lineage) -> dict[str, Reference]:
    """Return the logs and the data the experience model was fitted on, as datasets of the run's own MLflow run."""
    fitted = {f"experience {number}": one for number, one in enumerate(_experience(made))}
    return {"logs": made.artifacts.logs, **fitted}


def policy_results(evaluation: Mapping[str, Any], real_interactions: int) -> dict[str, Any]:
    """Return one policy's evaluation in the form of the results table."""
    return {
        "real_success": evaluation["real_success"],
        "interval": [evaluation["interval_low"], evaluation["interval_high"]],
        "real_interactions": real_interactions,
        "dream_success": evaluation["dream_success"],
        "outcome_agreement": evaluation["outcome_agreement"],
        "dream_real_gap": evaluation["dream_real_gap"],
        "num_tasks": len(evaluation["successes"]),
    }


def _measured(evaluations: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of real steps that were played only for measurement; none where there are only logs."""
    return sum(int(one.get("num_steps", 0)) + int(one.get("num_replayed_steps", 0)) for one in evaluations)


def _offline(made: Lineage) -> int:
    """Return the number of real steps in the logs, including the starting policy's own."""
    return sum(int(one.notes.get("num_transitions", 0)) for one in _experience(made))


def _experience(made: Lineage) -> list[Reference]:
    return made.artifacts.experience if "experience" in made.artifacts else []
