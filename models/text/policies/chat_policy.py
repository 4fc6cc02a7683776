"""Policy that is an instruct model: prompts in its own chat template, and answers with or without a thought."""

import re
from collections.abc import Sequence

from models.text.budgets import LEFT_OUT, within_budget
from models.text.characters import END_ID, Characters
from models.text.chat_template import ChatTemplate
from models.text.policies.agent_prompt import agent_prompt, around_state, history_text
from models.text.policies.policy_format import Answer, Shown
from models.text.prompts import PromptFormat
from schemas.recipes.policy import PolicyRecipe
from schemas.records import MALFORMED, AgentTask
from schemas.sampling import Sampled, Sampling

_ANSWER = re.compile(r"\s*<think>(?P<thought>.*?)</think>\s*<action>(?P<action>.*?)</action>\s*", re.DOTALL)
_TAGS = re.compile(r"</?(?:think|action)>")


class ChatPolicy:
    """Prompts of role, task, number of steps, last turns and state; an answer is an action, after a thought if asked.

    Text of tasks and states is encoded without special tokens, so that no page can end the user's message.
    """

    remembers_episode = False

    def __init__(self, format: PromptFormat | Characters, recipe: PolicyRecipe) -> None:
        """Create the format of a policy.

        Args:
            format: Text as tokens, or as the characters of a message to an endpoint, which has its model's template.
            recipe: Section that says what the policy is shown, with template = "chat".

        Raises:
            InputError: the tokenizer has no usable chat template, or the recipe no usable prompt.
        """
        self._format, self._recipe = format, recipe
        self._template, self._prompt = _template_of(format), around_state(agent_prompt(recipe))
        self._end_ids = self._template.ends(format.end_ids)

    def prompt(self, task: AgentTask, history: Sequence[tuple[str, str]], state: str) -> Shown:
        """Return the prompt of a turn; see `PolicyFormat`."""
        format, template, num_shown = self._format, self._template, self._recipe.history_length

        def composed(turns: Sequence[tuple[str, str]], state_ids: Sequence[int]) -> list[int]:
            fields = {"task": task.instruction, "num_steps": len(history), "history": history_text(turns)}
            before, after = (format.ids(part.substitute(fields)) for part in self._prompt)
            return [*template.before, *before, *state_ids, *after, *template.between]

        shown = list(history[max(0, len(history) - num_shown) :])
        budget = self._recipe.prompt_budget
        return within_budget(budget, shown, format.ids(state), format.ids(LEFT_OUT), composed)

    def next_state(self, state: str) -> None:
        """Return nothing: each turn has a prompt of its own."""

    def answer(self, action: str, thought: str = "") -> list[int]:
        """Encode an action, after a thought if the policy thinks."""
        text = action if self._recipe.think == "off" else f"<think>{thought}</think><action>{action}</action>"
        return [*self._format.ids(text), self._template.end_id]

    def read(self, sampled: Sampled) -> Answer:
        """Find the action; an answer that was cut, or has another form, is refused as a whole."""
        text = self._format.decode(sampled.content).strip()
        if not sampled.ended:
            return _malformed(f"answers longer than {self._recipe.max_answer_tokens} tokens")
        if self._recipe.think == "off":
            return Answer(text) if text and not _TAGS.search(text) else _malformed("answers without an action")
        found = _ANSWER.fullmatch(text)
        if not found or not found["action"].strip() or _TAGS.search(found["thought"] + found["action"]):
            return _malformed("answers without a thought and an action")
        return Answer(found["action"].strip(), found["thought"].strip())

    def sampling(self, temperature: float) -> Sampling:
        """Return how an answer is sampled."""
        return Sampling(self._recipe.max_answer_tokens, self._end_ids, temperature)


def _template_of(format: PromptFormat | Characters) -> ChatTemplate:
    return ChatTemplate((), (), END_ID) if isinstance(format, Characters) else ChatTemplate.of(format.tokenizer)


def _malformed(why: str) -> Answer:
    """Return an answer without an action. Its text stays in its tokens: an environment might find an action in it."""
    return Answer(MALFORMED, limits=(why,))
