"""Entity renaming in whole trajectories: the cheapest way to make a small model copy instead of memorise."""

import random
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from models.text.prompts import TransitionQuery
from schemas.records import AgentTask, Trajectory

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
"""Ordinary words in invented names, besides made-up ones; none of them names a food."""

_ONSETS = "b c d f g h j k l m n p r s t v w z ch sh br cr gr pl st tr".split()
_CODAS = ("", "", "", "n", "r", "l", "t", "s", "m", "ck", "p")
_SHARED_WORDS = 0.3
"""Probability that a word of an invented name is taken from another one. A model that never saw shared words takes
red hot pepper for red bell pepper."""
_ALPHABETS = (string.ascii_lowercase, string.ascii_uppercase, string.digits)
_A_CODE = re.compile(r"(?=\S{3,}$)(?=.*[A-Za-z])(?:.*\d|.*[a-z][A-Z])")
"""Pattern of names that are codes. Digits alone do not count: there are too few, and all of one length may be taken."""
SYLLABLES = [onset + vowel + coda for onset in _ONSETS for vowel in "aeiou" for coda in _CODAS]


def invented_names(
    names: Sequence[str], rng: random.Random, pieces: Sequence[str] = SYLLABLES, avoid: str = ""
) -> dict[str, str]:
    """Return a new name for each, no two alike, though some share words, as real names do.

    The spelling follows the name: a code like `h4aF` becomes another code, and capitals stay where they were.

    Args:
        names: Names to replace.
        rng: Source of randomness.
        pieces: Pieces that made-up words consist of. The pieces of a tokenizer's vocabulary let a model meet
            every token as part of a name, so that it can copy names that it never saw.
        avoid: Text whose words may not become names, for example a state, where they have a meaning.
    """
    taken = set(re.findall(r"\w+", avoid))
    mapping: dict[str, str] = {}
    words: list[str] = []
    for name in names:
        is_code = _A_CODE.match(name)
        while (invented := _code_like(name, rng) if is_code else _name_like(name, rng, pieces, words)) in taken:
            pass
        taken.add(invented)
        words += [] if is_code else invented.lower().split()
        mapping[name] = invented
    return mapping


def name_pieces(vocabulary: Iterable[str]) -> list[str]:
    """Return the short lower-case pieces of a byte-level vocabulary."""
    letters = {token.removeprefix("\u0120") for token in vocabulary}
    return sorted(
        piece for piece in letters if piece.isascii() and piece.isalpha() and piece.islower() and len(piece) <= 4
    )


def _code_like(name: str, rng: random.Random) -> str:
    alphabets = (next((some for some in _ALPHABETS if one in some), one) for one in name)
    return "".join(map(rng.choice, alphabets))


def _name_like(name: str, rng: random.Random, pieces: Sequence[str], words: Sequence[str]) -> str:
    invented = _name(rng, pieces, words)
    if name.isupper():
        return invented.upper()
    return invented.title() if name.istitle() else invented


def _name(rng: random.Random, pieces: Sequence[str], words: Sequence[str]) -> str:
    """Draw a name of one to three words."""
    return " ".join(_word(rng, pieces, words) for _ in range(rng.choice((1, 1, 2, 2, 2, 3))))


def _word(rng: random.Random, pieces: Sequence[str], words: Sequence[str]) -> str:
    if words and rng.random() < _SHARED_WORDS:
        return rng.choice(words)
    return rng.choice(PLAIN_WORDS) if rng.random() < 0.3 else "".join(rng.choices(pieces, k=rng.randint(1, 3)))


def renamer(names: Mapping[str, str]) -> Renamer:
    """Return a function that replaces whole names in a text; longer names first, all in one pass."""
    if not names:
        return lambda text: text
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)({'|'.join(longest_first)})(?!\w)")
    return lambda text: pattern.sub(lambda match: names[match.group()], text)


def to_invented_names(
    names: Sequence[str], episodes: Sequence[Trajectory], rng: random.Random, pieces: Sequence[str] = SYLLABLES
) -> Renamer:
    """Return a renamer from names to invented ones, none of them a word of the episodes' states."""
    states = "\n".join(turn.step.state for episode in episodes for turn in episode.turns)
    return renamer(invented_names(names, rng, pieces, avoid=states))


class EntityRenaming:
    """Entity renaming of a task: the policy is shown invented names, everything else uses the task's own."""

    def __init__(self, names: Mapping[str, str]) -> None:
        """Create a renaming from own names to invented ones, no two alike; an empty mapping renames nothing."""
        self.to_renamed = renamer(names)
        """Function that renames entities in a text for the policy."""
        self.to_original = renamer({alias: name for name, alias in names.items()})
        """Function that restores the task's own names in the policy's text."""


def renamed(trajectory: Trajectory, new: Renamer) -> Trajectory:
    """Return the episode with other names in task, states, thoughts, actions and reasoning."""
    turns = [
        replace(
            turn,
            state=new(turn.state),
            action=new(turn.action),
            thought=new(turn.thought),
            step=replace(turn.step, state=new(turn.step.state), reasoning=new(turn.step.reasoning)),
        )
        for turn in trajectory.turns
    ]
    return replace(trajectory, task=renamed_task(trajectory.task, new), turns=turns)


def renamed_situation(situation: TransitionQuery, new: Renamer) -> TransitionQuery:
    """Return the situation with other names, also in its demonstrations."""
    return replace(
        situation,
        task=renamed_task(situation.task, new),
        state=new(situation.state),
        action=new(situation.action),
        history=tuple(map(new, situation.history)),
        demonstrations=tuple(map(new, situation.demonstrations)),
    )


def renamed_task(task: AgentTask, new: Renamer) -> AgentTask:
    """Return the task with other names."""
    return replace(task, instruction=new(task.instruction), initial_state=new(task.initial_state))
