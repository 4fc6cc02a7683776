"""Prompt of an agent that is an instruct model, and the form that its answers have to have.

Source: paper, appendix C.3, which has the templates of verl-agent: role, task, number of steps, recent history, present
state. Differs: no list of admissible actions, which the states have themselves where an environment lists them.
"""

import re
from collections.abc import Sequence
from string import Template

from schemas.errors import InputError
from schemas.recipes.policy import PolicyRecipe

_FIELDS = {"task", "num_steps", "history", "state", "form"}
_STATE, _FORM = (re.compile(rf"(?<!\$)\$(?:{name}\b|{{{name}}})") for name in ("state", "form"))

_PROMPT = """\
You are an agent that acts in an environment, one action at a time.
Your task: $task

You have taken $num_steps actions so far.$history
The environment now:
$state

$form"""

_FORMS = {
    "off": "Write your next action and nothing else.",
    "short": "Think in a sentence or two, then act. Write: <think>your thought</think><action>your action</action>",
    "free": "Think step by step, then act. Write: <think>your thoughts</think><action>your action</action>",
}


def agent_prompt(recipe: PolicyRecipe) -> str:
    """Return the text of the prompt that a recipe asks for, with what it says about the form of an answer filled in.

    Raises:
        InputError: it lacks $task, has not one $state, or has a field that is not known.
    """
    text = recipe.prompt or _PROMPT
    named = set(Template(text).get_identifiers()) if Template(text).is_valid() else set[str]()
    if len(_STATE.findall(text)) != 1 or "task" not in named or not named <= _FIELDS:
        raise InputError(
            f"policy.prompt has the fields {', '.join(f'${name}' for name in sorted(named)) or 'none'}: it needs $task and one "
            "$state, and may have $num_steps, $history and $form; a dollar sign is written $$"
        )
    return _FORM.sub(_FORMS[recipe.think], text)


def around_state(prompt: str) -> tuple[Template, Template]:
    """Return a prompt's parts before and after the state, with the fields task, num_steps and history."""
    before, after = map(Template, _STATE.split(prompt))
    return before, after


def history_text(turns: Sequence[tuple[str, str]]) -> str:
    """Return recent turns as text, oldest first."""
    if not turns:
        return ""
    shown = "\n".join(f"Environment:\n{state}\nYour action: {action}" for state, action in turns)
    return f" The last of them:\n{shown}\n"
