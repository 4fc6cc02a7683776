"""Examples and questions for a judge of states, on how likely a win is from there."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from models.methods.streams import TrainingGroup, TrainingStream, answered
from models.text.prompts import PromptFormat
from models.training.sft import Example
from schemas.records import AgentTask


@dataclass(frozen=True, slots=True)
class ValuedState:
    """State with the share of dreams from there that won."""

    task_id: str
    instruction: str
    state: str
    value: float

    @property
    def task(self) -> AgentTask:
        """The task, as far as a judge is shown it."""
        return AgentTask(self.task_id, self.instruction, "train", "")


def outcome_examples(format: PromptFormat, states: Sequence[ValuedState], num_dreams: int) -> list[Example]:
    """Return an example of each dream's outcome; none if all ended alike, which teaches nothing to tell apart.

    Args:
        format: Format of the judge's prompts.
        states: Valued states.
        num_dreams: Number of dreams from each; of those that broke, the share that won counts.
    """
    if all(one.value == 0 for one in states) or all(one.value == 1 for one in states):
        return []
    examples: list[Example] = []
    for one in states:
        num_won = round(one.value * num_dreams)
        examples += [_example(format, one, won=True)] * num_won
        examples += [_example(format, one, won=False)] * (num_dreams - num_won)
    return examples


def _example(format: PromptFormat, state: ValuedState, *, won: bool) -> Example:
    return Example.of((format.value_prompt(state.task, state.state), False), (format.value(won=won), True))


def question(format: PromptFormat, task: AgentTask, number: int) -> TrainingGroup:
    """Return both answers to what a state is worth, as streams whose log-probabilities are compared; a win comes first."""
    prompt = format.value_prompt(task, task.initial_state)
    answers = [format.value(won=won) for won in (True, False)]
    streams = [TrainingStream(answered(prompt, answer, [0.0] * len(answer)), []) for answer in answers]
    return TrainingGroup(streams, group_id=str(number))


def chance(format: PromptFormat, logprobs: Sequence[float]) -> float:
    """Return the chance to win, given the log-probabilities of the tokens of both answers, one after the other."""
    size = len(format.value(won=True))
    return 1 / (1 + math.exp(sum(logprobs[size:]) - sum(logprobs[:size])))
