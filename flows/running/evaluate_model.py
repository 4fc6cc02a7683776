"""Evaluate any model as the policy of a recipe: on its pinned test tasks, beside the policies of a run."""

from collections import defaultdict
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from prefect import flow

from flows.loop.evaluate_and_judge import held_out
from flows.loop.lineage import Lineage
from flows.reports.compare_runs import successes_of
from flows.run_session import run_session
from infra.progress.progress import Display
from models.measurement.intervals import paired_gain
from schemas.errors import InputError
from schemas.plain import restored
from schemas.recipes.digests import digest_of
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from schemas.runs import Evaluation, Record
from tasks.backbones.fetch_backbone import fetch_backbone
from tasks.backbones.find_backbone import folder_digest
from tasks.playing.open_actor import put_endpoint_policy
from tasks.running.pins import with_encoder_pinned

_SHOWN = ("real_success", "interval_low", "interval_high", "num_failed", "dream_success", "outcome_agreement")


@dataclass(frozen=True, slots=True)
class EndpointModel:
    """Chat model at an OpenAI-compatible endpoint."""

    url: str
    name: str


def evaluate_model(
    recipe: Recipe, against: Record | None, display: Display, endpoint: EndpointModel | None = None
) -> dict[str, Any]:
    """Play a recipe's pinned test tasks with a model as the policy, and return what came of it.

    Args:
        recipe: Recipe with the model as its backbone, unless it is at an endpoint, and evaluation.panel = "pinned".
        against: Record of a run, in whose dream the tasks are played, too, and whose policies it is compared with.
        display: Shows progress.
        endpoint: Model to evaluate instead of the backbone.

    Returns:
        Real success with its interval, that of families, and the paired gain over each policy of the run; with a run,
        success in its dream and the share of dreamt outcomes that hold, too.

    Raises:
        InputError: the model cannot be used, or the run was evaluated on other tasks.
    """
    digest = digest_of([recipe.digest, asdict(endpoint)]) if endpoint else recipe.digest
    run_id = f"evaluate-{recipe.name}-{digest[:8]}"
    with run_session(recipe, run_id, display):
        evaluation = model_evaluation.with_options(flow_run_name=run_id)
        measured = evaluation(recipe, restored(against["lineage"]) if against else {}, endpoint)
    others = successes_of(against) if against else {}
    successes = measured["successes"]
    return {
        "run_id": run_id,
        "model": endpoint.name if endpoint else recipe.backbone.model,
        "num_tasks": len(successes),
        **{name: measured[name] for name in _SHOWN if name in measured},
        "families": _by_family(successes, measured["families"]),
        "gains": {name: _gain(successes, theirs) for name, theirs in others.items()},
    }


@flow(name="model-evaluation", validate_parameters=False)
def model_evaluation(recipe: Recipe, references: dict[str, Any], endpoint: EndpointModel | None = None) -> Evaluation:
    """Evaluate a model on the pinned test tasks of a recipe.

    Args:
        recipe: Recipe, which names a model.
        references: Lineage of a run in whose dream it is evaluated, too; empty: for real only.
        endpoint: Model to evaluate; None: the backbone.
    """
    recipe, made = with_encoder_pinned(recipe), Lineage.of_finished(references)
    if not references:
        made.artifacts.experience = []
    return held_out(recipe, made, "model", _policy(recipe, endpoint), 0)


def _policy(recipe: Recipe, endpoint: EndpointModel | None) -> Reference:
    if endpoint:
        return put_endpoint_policy(endpoint.url, endpoint.name)
    return fetch_backbone(recipe.backbone, folder_digest(recipe.backbone))


def _gain(successes: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    """Return the paired gain over a policy of a run.

    Raises:
        InputError: it was evaluated on other tasks.
    """
    if successes.keys() != theirs.keys():
        shared = len(successes.keys() & theirs.keys())
        raise InputError(
            f"the run was evaluated on other tasks, of which {shared} are among these {len(successes)}: compare with a run that "
            "has evaluation.panel = 'pinned' and as many test tasks"
        )
    return asdict(paired_gain([successes[task] for task in successes], [theirs[task] for task in successes]))


def _by_family(successes: dict[str, float], families: dict[str, str]) -> dict[str, dict[str, float]]:
    by_family: dict[str, list[float]] = defaultdict(list)
    for task, success in successes.items():
        by_family[families[task]].append(success)
    return {name: {"num_tasks": len(some), "real_success": fmean(some)} for name, some in by_family.items()}
