"""Cooking games by seed, some fifty times faster than by TextWorld alone.

TextWorld's generator has four hot spots, which are patched out during a call:

- It parses its knowledge base anew for every game.
- It compiles a z-machine twice only to record a walkthrough, which is unused here.
- It searches its grammar for mistakes, which it would only print.
- It parses the grammar of house games first. That of cooking games then replaces all its rules but seven, which no
  cooking game uses.

Games are cached in memory, not on disk, because generating one costs less than reading one. An evaluation needs each of
its games three times: for its task, its episode and its replay.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from textworld.challenges.tw_cooking import cooking
from textworld.generator import text_grammar
from textworld.generator.data import KnowledgeBase
from textworld.generator.game import Game, GameOptions
from textworld.generator.maker import GameMaker
from textworld.generator.text_grammar import Grammar

_load_knowledge = lru_cache(maxsize=4)(KnowledgeBase.load)
_OWN_GRAMMAR = SimpleNamespace(default=lambda: SimpleNamespace(text_grammars_path=cooking.KB_GRAMMAR_PATH))
"""The place to look for the rules of house games: those of cooking games, which are parsed once."""
_one_at_a_time = threading.Lock()
_NUM_CACHED = 2_048
"""Maximum number of games in memory, 0.1 to 0.2 MB each: all train and valid tasks of a recipe, and two panels of test tasks."""


@lru_cache(maxsize=_NUM_CACHED)
def make_game(split: str, seed: int, settings: tuple[tuple[str, int | bool], ...]) -> Game:
    """Return the cooking game of a seed.

    Args:
        split: train, valid or test: TextWorld's own split of foods and of their preparations.
        seed: Seed of rooms, things and recipe.
        settings: Pairs for recipe, take, go, open, cook and cut, as in TextWorld's `tw-make tw-cooking`.
    """
    options = GameOptions()
    options.seeds = seed
    with _one_at_a_time, _fast_generator():
        chosen: dict[str, Any] = {**dict(settings), "drop": False, "recipe_seed": 0, "split": split}
        return cooking.make(chosen, options)


@contextmanager
def _fast_generator() -> Iterator[None]:
    with (
        patch.object(KnowledgeBase, "load", staticmethod(_load_knowledge)),
        patch.object(GameMaker, "set_walkthrough", lambda maker, commands: None),
        patch.object(Grammar, "check", lambda grammar: True),
        patch.object(text_grammar, "KnowledgeBase", _OWN_GRAMMAR),
    ):
        yield
