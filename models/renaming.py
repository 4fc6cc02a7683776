"""Renaming things in whole trajectories: the cheapest way to make a small model copy instead of memorise."""

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from models.prompts import Situation
from schemas.ports import Environment
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn

Renamer = Callable[[str], str]

PLAIN_WORDS = """
    red orange yellow green blue purple white black brown grey small large fresh dry sweet bitter hot cold round
    flat soft hard bell block leg wing breast of the apron basket bottle bowl box brush bucket button candle
    card cart chain cloth coat coin cord cup curtain desk dish drum feather flag flute fork frame glass glove
    hammer hat helmet jar jug kettle key ladder lamp lantern leaf lid lock log map mat mirror mug nail needle
    net oar paper pebble pen pillow pin pipe plank plate pot purse ribbon ring rope rug ruler sack saddle scarf
    shell shoe sock spoon stick stone string thread ticket tool towel toy tray vase wagon wheel whistle wire
    yarn
""".split()
"""Words of invented names beside made-up ones: none of them names a food."""

_ONSETS = "b c d f g h j k l m n p r s t v w z ch sh br cr gr pl st tr".split()
_CODAS = ("", "", "", "n", "r", "l", "t", "s", "m", "ck", "p")
SYLLABLES = [onset + vowel + coda for onset in _ONSETS for vowel in "aeiou" for coda in _CODAS]


def invented_names(
    names: Sequence[str], rng: random.Random, pieces: Sequence[str] = SYLLABLES, avoid: str = ""
) -> dict[str, str]:
    """A new name of one to three words for each, no two alike.

    Args:
        names: To be replaced.
        rng: Source of randomness.
        pieces: What words that are not plain are made of. The pieces of a tokenizer's vocabulary let a
            model meet every token as part of a name, and so copy names that it never saw.
        avoid: Text whose words may not become names, such as a state, where they mean something.
    """
    taken = set(re.findall(r"\w+", avoid))
    mapping: dict[str, str] = {}
    for name in names:
        while (invented := _name(rng, pieces)) in taken:
            pass
        taken.add(invented)
        mapping[name] = invented
    return mapping


def name_pieces(vocabulary: Iterable[str]) -> list[str]:
    """Short lower-case pieces of a byte-level vocabulary."""
    letters = {token.removeprefix("\u0120") for token in vocabulary}
    return sorted(
        piece for piece in letters if piece.isascii() and piece.isalpha() and piece.islower() and len(piece) <= 4
    )


def _name(rng: random.Random, pieces: Sequence[str]) -> str:
    return " ".join(_word(rng, pieces) for _ in range(rng.choice((1, 1, 2, 2, 2, 3))))


def _word(rng: random.Random, pieces: Sequence[str]) -> str:
    return rng.choice(PLAIN_WORDS) if rng.random() < 0.3 else "".join(rng.choices(pieces, k=rng.randint(1, 3)))


def renamer(names: Mapping[str, str]) -> Renamer:
    """Replaces whole names in a text; longer names first, all at once."""
    if not names:
        return _as_it_is
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    pattern = re.compile(rf"\b({'|'.join(longest_first)})\b")
    return lambda text: pattern.sub(lambda match: names[match.group()], text)


def renamed(trajectory: Trajectory, new: Renamer) -> Trajectory:
    """The same episode with other names in task, states, actions and reasoning."""
    turns = [
        Turn(
            new(turn.state),
            new(turn.action),
            replace(turn.step, state=new(turn.step.state), reasoning=new(turn.step.reasoning)),
        )
        for turn in trajectory.turns
    ]
    return replace(trajectory, task=_renamed_task(trajectory.task, new), turns=turns)


def renamed_situation(situation: Situation, new: Renamer) -> Situation:
    """The same situation with other names, in what it retrieved too."""
    return replace(
        situation,
        task=_renamed_task(situation.task, new),
        state=new(situation.state),
        action=new(situation.action),
        history=tuple(map(new, situation.history)),
        demonstrations=tuple(map(new, situation.demonstrations)),
    )


def _renamed_task(task: AgentTask, new: Renamer) -> AgentTask:
    return replace(task, instruction=new(task.instruction), initial_state=new(task.initial_state))


class RenamedEnvironment:
    """An environment, some of whose tasks are played under other names.

    Old and new names change places in states on the way out and in actions on the way in, so that the environment
    inside keeps its own, and a policy that says an old name by heart names nothing there.

    Differs: the paper has nothing of the kind. A policy that dreams of few names for long learns them by heart.
    """

    def __init__(self, inner: Environment, names: Mapping[str, Mapping[str, str]]) -> None:
        """Names for others, by task id; a task that is not there keeps its own."""
        self._inner = inner
        self._swaps = {
            task_id: renamer({**mapping, **{new: old for old, new in mapping.items()}})
            for task_id, mapping in names.items()
        }
        self._task_ids: dict[int, str] = {}
        self._shown: dict[int, str] = {}

    def seen(self, task: AgentTask) -> AgentTask:
        """A task as it is played here."""
        return _renamed_task(task, self._swap(task.task_id))

    def as_it_was(self, trajectory: Trajectory) -> Trajectory:
        """A trajectory of here with the names of the environment inside; its tokens are as the policy saw them."""
        return renamed(trajectory, self._swap(trajectory.task.task_id))

    def _swap(self, task_id: str) -> Renamer:
        return self._swaps.get(task_id, _as_it_is)

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Start an episode of a task, as it is seen here, in each slot."""
        self._task_ids |= {slot: task.task_id for slot, task in tasks.items()}
        states = self._inner.reset({slot: self.seen(task) for slot, task in tasks.items()})  # its own names again
        self._shown |= {slot: self._swap(self._task_ids[slot])(state) for slot, state in states.items()}
        return {slot: self._shown[slot] for slot in tasks}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Take one action in each slot."""
        told = {slot: self._swap(self._task_ids[slot])(action) for slot, action in actions.items()}
        return {slot: self._shown_step(slot, step) for slot, step in self._inner.step(told).items()}

    def _shown_step(self, slot: int, step: Step) -> Step:
        """A step with its state as it is seen here; broken if the old state could not be told from the new one."""
        swap = self._swap(self._task_ids[slot])
        state, reasoning = swap(step.state), swap(step.reasoning)
        if swap(state) != step.state or swap(reasoning) != step.reasoning:
            return Step(self._shown[slot], 0.0, done=True, success=False, failure=Failure.NAMES)
        self._shown[slot] = state
        return replace(step, state=state, reasoning=reasoning)


def _as_it_is(text: str) -> str:
    return text


def states_text(episodes: Sequence[Trajectory]) -> str:
    """All states of some episodes in one text."""
    return "\n".join(turn.step.state for episode in episodes for turn in episode.turns)
