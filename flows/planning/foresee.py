"""Forecast of the work left for a run: the last run's steps that would be taken over, and the first that would not.

A step is taken over if its code, packages, settings, recipe sections and inputs are the same, and none of its inputs
would be produced again. Code is the same if all files that it consisted of are. Inputs are identified by the digests of
the results of other steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from infra.storage.run_records import records, steps_of
from schemas.recipes.digests import digest_of
from schemas.recipes.recipe import Recipe
from tasks.backbones.find_backbone import folder_digest
from tasks.logs.sources.files import log_files
from tasks.running.cache_key import versions_of
from tasks.running.device import number_settings
from tasks.running.import_closure import digests_now
from tasks.running.pins import with_encoder_pinned


@dataclass(frozen=True, slots=True)
class Foresight:
    """Steps that would be taken over, and from which run."""

    run_id: str
    num_steps: int
    """Number of steps of that run."""
    num_taken_over: int
    first_to_do: str
    """The first step that would run again, with the reason; empty if none would."""


def foresee(recipe: Recipe) -> Foresight | None:
    """Return what can be taken over from the last run of a recipe; None if no run has recorded steps."""
    mine = [one for one in records() if one["recipe"]["name"] == recipe.name and one["key"]]
    with_steps = ((one["run_id"], steps_of(one["run_id"])) for one in reversed(mine))
    run_id, stored = next(((name, steps) for name, steps in with_steps if steps["steps"]), ("", {"steps": []}))
    if not run_id:
        return None
    pinned = with_encoder_pinned(recipe)
    sections, plain = {digest_of(one) for one in _sections(pinned)}, _plain_inputs(pinned)
    made_again: set[str] = set()
    reasons: list[str] = []
    for step in stored["steps"]:
        if reason := _reason(step, stored, sections, plain, made_again):
            made_again |= set(step["made"])
            reasons.append(f"{step['task']}: {reason}")
    num_steps = len(stored["steps"])
    return Foresight(run_id, num_steps, num_steps - len(reasons), reasons[0] if reasons else "")


def _reason(
    step: dict[str, Any],
    stored: dict[str, Any],
    sections: set[str],
    plain: dict[str, Any],
    made_again: set[str],
) -> str:
    """Return why a step would run again; empty if it would not."""
    parts = stored["step_tasks"][step["task"]]
    if parts["code"] != digests_now(parts["code"]):
        return "its code changed"
    if parts["packages"] != versions_of(parts["packages"]):
        return "a package has another version"
    if parts["settings"] and parts["settings"] != number_settings():
        return "the device or its precision is another"
    inputs = step["inputs"]
    if any(value in stored["step_sections"] and value not in sections for value in _digests(inputs)):
        return "the recipe changed"
    if changed := [name for name, value in plain.items() if name in inputs and inputs[name] != value]:
        return f"{changed[0].replace('_', ' ')} changed"
    return "what it reads is made again" if made_again & set(_digests(inputs)) else ""


def _digests(value: Any) -> Iterator[str]:
    """Yield all strings among a step's inputs."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _digests(item)


def _sections(recipe: Recipe) -> Iterator[Any]:
    """Yield every section that the flow may pass to a step."""
    yield from (getattr(recipe, name) for name in type(recipe).model_fields)
    yield from (recipe.play, recipe.real_play, recipe.experience.as_fitted, recipe.backbone.scratch or recipe.backbone)
    yield from (recipe.real_rl, recipe.rl.rollouts, recipe.evaluation.without_dreams)


def _plain_inputs(recipe: Recipe) -> dict[str, Any]:
    """Return the inputs that steps get from the recipe besides sections, by argument."""
    return {
        "seed": recipe.seed,
        "log_files": log_files(recipe.ingest.path),
        "files_sha256": folder_digest(recipe.backbone),
    }
