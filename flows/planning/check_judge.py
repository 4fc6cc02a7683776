"""Check the arguments of `dreamgym judge` before slow imports, so that a mistake is reported at once."""

from infra.settings import settings
from schemas.errors import InputError
from schemas.recipes.recipe import stored_recipe
from schemas.runs import Record


def endpoint_judge(record: Record, model: str | None) -> str:
    """Return the name of the model at the endpoint that judges the dreams of a run; empty: its own experience model.

    Args:
        record: Record of the run.
        model: Model at the endpoint; None: the run's experience model.

    Raises:
        InputError: the run has no dreams, its experience model answers no questions, or there is no endpoint.
    """
    run_id, recipe = record["run_id"], stored_recipe(record["recipe"])
    if not record["lineage"].get("dreams"):
        raise InputError(
            f"run {run_id} has no dreams to judge, as it ended before its policy was trained in them: "
            f"continue it with `dreamgym run {recipe.name} --only dream`, or name another run (`dreamgym runs`)"
        )
    name = model or recipe.experience.endpoint_model
    if name:
        _require_endpoint(name)
    elif not recipe.experience.is_chat:
        raise InputError(
            f'the experience model of run {run_id} answers no questions, as its experience.template is "plain": name a '
            "judge with --model NAME, a model at the OpenAI-compatible endpoint DREAMGYM_ENDPOINT_URL"
        )
    return name


def _require_endpoint(name: str) -> None:
    """Refuse a judge that cannot be asked.

    Raises:
        InputError: the settings name no endpoint.
    """
    if not settings().endpoint_url:
        raise InputError(
            f"{name} is to judge, and no endpoint is known: set DREAMGYM_ENDPOINT_URL to the address of an "
            "OpenAI-compatible server that has it"
        )
