"""Lineage of a run so far, and logging of its results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from infra.context import objects, run_context
from infra.progress.stage_labels import EVALUATION_LABELS
from schemas.plain import restored
from schemas.recipes.recipe import Recipe
from schemas.records import Reference, Trajectory
from schemas.runs import (
    Artifacts,
    DreamtEvaluation,
    Evaluation,
    Judgement,
    LeftBehind,
    PolicyKey,
    UnprovenVerdict,
)
from tasks.judging.evaluate import evaluate
from tasks.running.artifacts import get_trajectories


@dataclass
class Lineage:
    """Everything that a run has produced so far, by reference, and its measurements."""

    artifacts: Artifacts = field(default_factory=Artifacts)
    evaluations: dict[PolicyKey, Evaluation] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    calibrations: list[dict[str, Any]] = field(default_factory=list)
    curriculum: dict[str, Any] = field(default_factory=dict)
    """State of the curriculum."""
    fidelity: dict[str, float] = field(default_factory=dict)
    """Fidelity of the experience model on held-out real transitions."""
    memorisation: dict[str, float] = field(default_factory=dict)
    """Real success of the starting policy on tasks that it was cloned from, and on others."""
    gate: Judgement | None = None
    """Verdict on the policy after training in the dream."""
    real_gate: Judgement | None = None
    """Verdict on the policy after sim-to-real."""
    dreamt: dict[PolicyKey, DreamtEvaluation] = field(default_factory=dict)
    """Evaluations in dreams of held-out logged tasks, where there is no real environment."""
    unproven: UnprovenVerdict | None = None
    """Verdict on the policy after training in the dream, where there is no real environment."""
    versions: dict[str, str] = field(default_factory=dict)
    """Version in the model registry, by policy."""
    promoted: PolicyKey | Literal[""] = ""
    """The run's policy that last became champion, promoted by this process or by one that was cut off."""
    real_interactions: dict[str, int] = field(default_factory=dict)
    """Number of real environment steps that a policy was trained on, by policy."""
    left_behind: LeftBehind = field(default_factory=LeftBehind)
    """Results of earlier runs that this one reads."""

    @property
    def measured(self) -> dict[str, Any]:
        """Everything but the artifacts, so that a finished run can be continued."""
        return {name: getattr(self, name) for name in _MEASURED}

    @property
    def entropies(self) -> dict[str, float]:
        """Latest reward entropy by task id."""
        return self.curriculum.get("entropies", {})

    @classmethod
    def of_finished(cls, stored: dict[str, Any]) -> "Lineage":
        """Return the lineage of a finished run as its record has it, including its measurements."""
        measured = restored(objects().get_json(stored["measured"])) if "measured" in stored else {}
        if "entropies" in measured:  # as runs before the curriculum was a method stored it
            measured["curriculum"] = {"entropies": measured.pop("entropies")}
        return cls(Artifacts(**stored), **measured)


_MEASURED = (
    *("evaluations", "rounds", "calibrations", "curriculum", "fidelity", "gate", "real_gate", "versions", "promoted"),
    *("real_interactions", "memorisation", "dreamt", "unproven"),
)


def log(stage: str, result: Mapping[str, Any], step: int = 0) -> None:
    """Log a task's measurements to the stage's MLflow run; done here so that cached results are logged, too."""
    run_context().tracker.stage(stage).log_metrics(numbers_in(result), step)


def numbers_in(result: Mapping[str, Any]) -> dict[str, int | float]:
    """Return the numbers in a task's result, which can be logged or plotted."""
    return {name: value for name, value in result.items() if isinstance(value, int | float)}


def show_rollouts(stage: str, episodes: Reference, step: int = 0) -> None:
    """Log two episodes of a stage as MLflow traces; for an evaluation, the same task for real and in the dream."""

    def two() -> list[Trajectory]:
        played = get_trajectories(episodes)
        return [played[0], played[len(played) // 2]]

    run_context().tracker.stage(stage).log_rollouts(two, step)


def evaluated(
    recipe: Recipe,
    made: Lineage,
    name: str,
    policy: Reference,
    split: str,
    num_tasks: int,
    round: int = 0,
    first_task: int = 0,
) -> Evaluation:
    """Return success of a policy for real and in the dream, logged under a name.

    The experience model retrieves real experience only, so that all evaluations of a run use the same model.
    """
    model, experience = getattr(made.artifacts, "experience_model", None), made.artifacts.experience
    measured = recipe.evaluation
    with run_context().display.one_line(EVALUATION_LABELS.get(name, name)) as conclude:
        evaluation: Evaluation = evaluate(
            name, policy, model, experience, recipe.play, measured, split, num_tasks, round, first_task
        )
        conclude(success_in(evaluation))
    log(name, evaluation, round)
    show_rollouts(name, evaluation["samples"], round)
    return evaluation


def success_in(evaluation: Evaluation) -> str:
    """Return real success, and dream success if the evaluation was dreamt, too."""
    dreamt = evaluation.get("dream_success")
    real = f"real {evaluation['real_success']:.1%}"
    return real if dreamt is None else f"{real}, dream {dreamt:.1%}"
