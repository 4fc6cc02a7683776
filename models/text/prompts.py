"""Conversion of tasks, states, actions and demonstrations to tokens, for the policy and the experience model.

    policy            [task] instruction [state] s0 [action] a0 [end] [state] s1 [action] a1 [end] ...
      or, each turn   [task] instruction [history] a' [state] s [action] a [end]
      or, reflecting  ... [state] s [think] reflection [action] a [end]
      or, shown a win [task] instruction [demo] a'; a'' ... [state] s [action] a [end]
    experience model  [task] instruction [demo] a' [next] changes' ... [history] a [state] s [action] a
                      -> [think] reasoning [next] changes [outcome] continue|success|failure [end]
      or, as a judge  ... [action] a [think] ... [outcome] o1 [think] ... [outcome] o2 [action] a -> [think] ... [end]
    judge of states [task] instruction [state] s [outcome] -> success|failure
    task generator    [vary] instruction [state] s0 -> [task] instruction' [state] s0' [end]

The experience model is conditioned as in the paper's Eq. 4: task, history, k demonstrations, state,
action. Content is encoded without special tokens, so text can never forge a marker of the shipped
backbone. A tokenizer without our markers writes them as plain text.

Differs: history is the last few actions, because a state here includes what was seen before; and the
model writes only the lines of the state that change (schemas/state_text.py), not the whole state.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from models.text.encoding import encoded
from schemas.records import AgentTask, Step
from schemas.state_text import changes_between

END = "[end]"
MARKERS = (END, "[task]", "[state]", "[action]", "[demo]", "[history]", "[think]", "[next]", "[outcome]", "[vary]")
CONTINUE, SUCCESS, FAILURE = " continue", " success", " failure"


@dataclass(frozen=True, slots=True)
class TransitionQuery:
    """Input of one prediction by the experience model (the paper's Eq. 4)."""

    task: AgentTask
    state: str
    action: str
    history: tuple[str, ...] = ()
    """Actions before this one, oldest first."""
    demonstrations: tuple[str, ...] = ()
    trajectory_id: str = ""
    turn: int = 1
    """Number of this turn in its episode, from 1; `history` may show fewer turns."""
    predictions: tuple[Step, ...] = ()
    """Predictions to review: the answer is a prediction again. Empty: nothing was predicted yet."""


def has_markers(text: str) -> bool:
    """Return whether a text contains a prompt marker; other brackets, for example `[7] textbox`, do not count."""
    return any(marker in text for marker in MARKERS)


def without_markers(text: str) -> str:
    """Return a stripped text with its prompt markers defused, so that text from outside cannot forge one."""
    for marker in MARKERS:
        text = text.replace(marker, f"({marker[1:-1]})")
    return text.strip()


def last_actions(actions: Sequence[str], num_actions: int) -> tuple[str, ...]:
    """Return the history that policy and experience model are shown: the last few actions, oldest first."""
    return tuple(actions[max(0, len(actions) - num_actions) :])


class PromptFormat:
    """Token ids of every prompt, for one tokenizer."""

    def __init__(self, tokenizer: Any, end_ids: Iterable[int] = ()) -> None:
        """Create a format.

        Args:
            tokenizer: Hugging Face tokenizer; our markers are tokens of their own, or plain text.
            end_ids: Tokens that end a text by the model's own settings, beside the tokenizer's.
        """
        self.tokenizer = tokenizer
        known = tokenizer.get_vocab()
        self.markers = {
            marker: [known[marker]] if marker in known else tokenizer.encode(marker, add_special_tokens=False)
            for marker in MARKERS
        }
        self.markers[END] = [tokenizer.eos_token_id]
        self.end_id: int = tokenizer.eos_token_id
        self.end_ids = (self.end_id, *(one for one in end_ids if one != self.end_id))
        self.text_ids = lru_cache(maxsize=65536)(self._encode)

    def _encode(self, text: str) -> tuple[int, ...]:
        return encoded(self.tokenizer, text, split_special_tokens=True)

    def ids(self, *parts: str) -> list[int]:
        """Encode parts: markers by name, everything else as content, which starts with a space."""
        ids: list[int] = []
        for part in parts:
            ids += self.markers[part] if part in self.markers else self.text_ids(part)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Decode content and markers as the text that was encoded, whatever the tokenizer would tidy up in it."""
        return self.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def task(self, task: AgentTask) -> list[int]:
        """Encode the start of a policy's episode."""
        return self.ids("[task]", f" {task.instruction}")

    def history(self, actions: Sequence[str]) -> list[int]:
        """Encode the actions before this one, oldest first."""
        return self.ids("[history]", " " + "; ".join(actions))

    def demonstration(self, actions: Sequence[str]) -> list[int]:
        """Encode the actions of a win, as a policy is shown them after its task."""
        return self.ids("[demo]", " " + "; ".join(actions))

    def state(self, state: str) -> list[int]:
        """Encode a state as the policy sees it before each action."""
        return self.ids("[state]", f"\n{state}", "[action]")

    @property
    def around_state(self) -> tuple[list[int], list[int]]:
        """Tokens before a state, and between it and its action."""
        return self.markers["[state]"], self.markers["[action]"]

    def turn_prompt(self, task: AgentTask, history: Sequence[str], state: str) -> list[int]:
        """Encode the prompt of a policy that sees its last few actions instead of the whole episode."""
        return self.task_and_last_actions(task, history) + self.state(state)

    def task_and_last_actions(self, task: AgentTask, actions: Sequence[str]) -> list[int]:
        """Encode what comes before the state in the prompt of such a policy."""
        return self.task(task) + (self.history(actions) if actions else [])

    def episode_so_far(self, task: AgentTask, history: Sequence[tuple[str, str]]) -> list[int]:
        """Encode a whole episode before the present state.

        Args:
            task: Agent task.
            history: States and the actions taken in them, oldest first.
        """
        turns = [self.state(state) + self.action(action) for state, action in history]
        return self.task(task) + [id for turn in turns for id in turn]

    def state_to_think_about(self, state: str) -> list[int]:
        """Encode a state that the policy reflects on before it acts."""
        return self.ids("[state]", f"\n{state}", "[think]")

    def thought_and_action(self, thought: str, action: str) -> list[int]:
        """Encode a reflection, and the action that follows from it."""
        return self.ids(f" {thought}", "[action]", f" {action}", END)

    def action(self, action: str) -> list[int]:
        """Encode an action as the policy would write it."""
        return self.ids(f" {action}", END)

    def situation(self, situation: TransitionQuery) -> list[int]:
        """Encode the prompt of the experience model, with the predictions that it is to review."""
        demos = [part for demo in situation.demonstrations for part in ("[demo]", demo)]
        before = self.task(situation.task) + self.ids(*demos) + self.history(situation.history)
        asked = before + self.state(situation.state) + self.ids(f" {situation.action}")
        if not situation.predictions:
            return asked
        predicted = [self.prediction(one, changes_between(situation.state, one.state)) for one in situation.predictions]
        reviewed = [id for ids in predicted for id in ids[: -len(self.markers[END])]]
        return asked + reviewed + self.ids("[action]", f" {situation.action}")

    def prediction(self, step: Step, changes: str, *, with_reasoning: bool = True) -> list[int]:
        """Encode a step as the experience model should write it."""
        reasoning = ("[think]", f" {step.reasoning}") if with_reasoning else ()
        return self.ids(*reasoning, "[next]", f"\n{changes}", "[outcome]", outcome_of(step), END)

    def value_prompt(self, task: AgentTask, state: str) -> list[int]:
        """Encode the question to a judge of states whether a state will be won."""
        return self.task(task) + self.ids("[state]", f"\n{state}", "[outcome]")

    def value(self, *, won: bool) -> list[int]:
        """Encode the answer."""
        return self.ids(SUCCESS if won else FAILURE)

    def variation_prompt(self, task: AgentTask, state: str) -> list[int]:
        """Encode the task generator's prompt for a variation of a task."""
        return self.ids("[vary]", f" {task.instruction}", "[state]", f"\n{state}", "[task]")

    def variation(self, task: AgentTask, state: str) -> list[int]:
        """Encode a variation as the task generator should write it."""
        return self.ids(f" {task.instruction}", "[state]", f"\n{state}", END)


def outcome_of(step: Step) -> str:
    """Return the paper's two booleans Done and Success (figure 2) as one word."""
    if not step.done:
        return CONTINUE
    return SUCCESS if step.success else FAILURE


def demonstration_text(action: str, changes: str) -> str:
    """Format one retrieved transition as it is shown to the experience model."""
    return f" {action} =>\n{changes or '- nothing: changes'}"
