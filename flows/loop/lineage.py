"""What a run has made so far, and how it is logged."""

from dataclasses import dataclass, field
from typing import Any

from infra.context import objects, run_context
from schemas.plain import restored
from schemas.recipes.recipe import Recipe
from schemas.records import Reference, Trajectory
from schemas.runs import LeftBehind
from tasks.judging.evaluate import evaluate
from tasks.running.artifacts import get_trajectories


@dataclass
class Lineage:
    """Everything a run made so far, by reference, and what was measured."""

    references: dict[str, Any] = field(default_factory=dict)
    evaluations: dict[str, Any] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    calibrations: list[dict[str, Any]] = field(default_factory=list)
    entropies: dict[str, float] = field(default_factory=dict)
    """Latest reward entropy by task id."""
    fidelity: dict[str, float] = field(default_factory=dict)
    gate: dict[str, Any] = field(default_factory=dict)
    real_gate: dict[str, Any] = field(default_factory=dict)
    """The verdict on what sim-to-real made."""
    versions: dict[str, str] = field(default_factory=dict)
    """In the model registry, by policy."""
    promoted: str = ""
    """The policy of this run that was made champion last, by this process or one that was cut off."""
    real_interactions: dict[str, int] = field(default_factory=dict)
    """Environment steps that a policy was trained on, by policy."""
    left_behind: LeftBehind = field(default_factory=LeftBehind)
    """What earlier runs left behind and this one reads."""

    @property
    def measured(self) -> dict[str, Any]:
        """Everything but the references, so that a run that is finished can go on."""
        return {name: getattr(self, name) for name in _MEASURED}

    @classmethod
    def of_finished(cls, references: dict[str, Any]) -> "Lineage":
        """The lineage of a run that is finished, with what it had measured."""
        measured = restored(objects().get_json(references["measured"])) if "measured" in references else {}
        return cls(references=dict(references), **measured)


_MEASURED = (
    *("evaluations", "rounds", "calibrations", "entropies", "fidelity", "gate", "real_gate", "versions", "promoted"),
    "real_interactions",
)


def log(stage: str, result: dict[str, Any], step: int = 0) -> None:
    """Log what a task measured in the stage's MLflow run: here, so that a result that was stored counts as well."""
    run_context().tracker.stage(stage).log_metrics(numbers_in(result), step)


def numbers_in(result: dict[str, Any]) -> dict[str, int | float]:
    """What can be logged or drawn of a task's result."""
    return {name: value for name, value in result.items() if isinstance(value, int | float)}


def show_rollouts(stage: str, episodes: Reference, step: int = 0) -> None:
    """Two episodes of a stage as traces in MLflow; of an evaluation, the same task for real and in the dream."""

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
) -> dict[str, Any]:
    """Success of a policy for real and in the dream, logged under a name.

    The experience model retrieves real experience only, so that every evaluation of a run asks the same one.
    """
    model, experience = made.references["experience_model"], made.references["experience"]
    measured = recipe.evaluation
    evaluation = evaluate(name, policy, model, experience, recipe.play, measured, split, num_tasks, round, first_task)
    log(name, evaluation, round)
    show_rollouts(name, evaluation["samples"], round)
    return evaluation
