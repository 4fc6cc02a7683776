"""Check the arguments of `dreamgym judge` before slow imports, so that a mistake is reported at once."""

from infra.engines.endpoint import require_endpoint
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
        require_endpoint(settings(), [name])
    elif not recipe.experience.is_chat:
        raise InputError(
            f'the experience model of run {run_id} answers no questions, as its experience.template is "plain": name a '
            "judge with --model NAME, a model at the OpenAI-compatible endpoint DREAMGYM_ENDPOINT_URL"
        )
    return name
