"""Episodes under invented names, so that a network learns to copy names instead of knowing them."""

import random
from collections.abc import Sequence

from models.network.language_model import LanguageModel
from models.text.renaming import Renamer, name_pieces, renamed, renamer, to_invented_names
from schemas.ports import RealEnvironment
from schemas.records import Trajectory


def with_renamed_copies(
    episodes: list[Trajectory], copies: int, model: LanguageModel, environment: RealEnvironment, seed: int
) -> list[Trajectory]:
    """Return the episodes, and copies of each with invented names."""
    rng = random.Random(seed)
    pieces = name_pieces(model.tokenizer.get_vocab())
    renamed_ones = [
        renamed(one, to_invented_names(environment.names(one.task_as_it_began), [one], rng, pieces))
        for one in episodes
        for _ in range(copies)
    ]
    return episodes + renamed_ones


def renamers_in_turn(
    episodes: Sequence[Trajectory], copies: int, model: LanguageModel, environment: RealEnvironment, seed: int
) -> list[Renamer]:
    """Return a renamer for each episode: the first of every copies + 1 changes nothing, the others invent names."""
    rng = random.Random(seed)
    pieces = name_pieces(model.tokenizer.get_vocab())
    return [
        to_invented_names(environment.names(one.task_as_it_began), [one], rng, pieces)
        if number % (copies + 1)
        else renamer({})
        for number, one in enumerate(episodes)
    ]
