"""Renaming things in whole trajectories: the cheapest way to make a small model copy instead of memorise."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from schemas.records import AgentTask, Step, Trajectory, Turn


def rename(trajectory: Trajectory, names: Mapping[str, str]) -> Trajectory:
    """The same episode with other names in task, states, actions and reasoning."""
    if not names:
        return trajectory
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    pattern = re.compile(rf"\b({'|'.join(longest_first)})\b")

    def new(text: str) -> str:
        return pattern.sub(lambda match: names[match.group()], text)

    turns = [
        Turn(new(turn.state), new(turn.action), _renamed_step(turn.step, new)) for turn in trajectory.turns
    ]
    return replace(trajectory, task=renamed_task(trajectory.task, new), turns=turns)


def renamed_task(task: AgentTask, new: Callable[[str], str]) -> AgentTask:
    """The same task with other names."""
    return replace(task, instruction=new(task.instruction), initial_state=new(task.initial_state))


def _renamed_step(step: Step, new: Callable[[str], str]) -> Step:
    return replace(step, state=new(step.state), reasoning=new(step.reasoning))


def invented_names(
    names: Sequence[str], words: Sequence[str], syllables: Sequence[str], rng: random.Random
) -> dict[str, str]:
    """A new name of one to three words for each, plain or made of syllables; no two alike."""
    mapping: dict[str, str] = {}
    for name in names:
        while (invented := _name(words, syllables, rng)) in mapping.values():
            pass
        mapping[name] = invented
    return mapping


def _name(words: Sequence[str], syllables: Sequence[str], rng: random.Random) -> str:
    num_words = rng.choice((1, 1, 2, 2, 2, 3))
    return " ".join(_word(words, syllables, rng) for _ in range(num_words))


def _word(words: Sequence[str], syllables: Sequence[str], rng: random.Random) -> str:
    return rng.choice(words) if rng.random() < 0.4 else "".join(rng.choices(syllables, k=rng.randint(1, 2)))
