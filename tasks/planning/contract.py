"""Contract of a tokenizer with what policy and experience model read and write, before a model of it is trained or asked."""

from models.experience.experience_formats import open_experience_format
from models.experience.experience_model import parse_prediction
from models.text.policies.policy_formats import open_policy_format
from models.text.prompts import PromptFormat, TransitionQuery
from schemas.errors import InputError
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask, Step
from schemas.sampling import Sampled

_TASK = AgentTask("contract", "fry the carrot", "train", "contract")
_STATE = "- you: kitchen, 21 °C\n- carrot: counter raw"
_ACTION = "take carrot from counter"
_STEP = Step("- you: kitchen, 21 °C\n- carrot: held raw", 0.0, done=False, success=False, reasoning="It is there.")


def require_contract(format: PromptFormat, recipe: Recipe) -> None:
    """Refuse a tokenizer that does not give back what policy and experience model are taught to write.

    Args:
        format: Prompts in tokens of the model.
        recipe: Recipe, whose sections name the templates.

    Raises:
        InputError: a prediction or an action reads back as something else, or no token ends it.
    """
    _require_prediction(format, recipe)
    _require_action(format, recipe)


def _require_prediction(format: PromptFormat, recipe: Recipe) -> None:
    experience, situation = open_experience_format(format, recipe.experience), TransitionQuery(_TASK, _STATE, _ACTION)
    written = experience.prediction(_STATE, _STEP)
    text = experience.decode(written[:-1])
    read = parse_prediction(situation, experience.as_prediction(situation, text))
    if written[-1] not in experience.end_ids or (read.state, read.reasoning) != (_STEP.state, _STEP.reasoning):
        raise InputError(
            f"the model's tokenizer does not give a prediction back as it was written, but as {text!r}: name another backbone.model"
        )


def _require_action(format: PromptFormat, recipe: Recipe) -> None:
    policy = open_policy_format(format, recipe.policy)
    written = policy.answer(_ACTION, "It is there.")
    ends = written[-1] in policy.sampling(0.0).end_ids
    read = policy.read(Sampled(written, [0.0] * len(written), ended=True))
    if not ends or read.action != _ACTION:
        raise InputError(
            f"the model's tokenizer does not give an action back as it was written, but as {read.action!r}: name another backbone.model"
        )
