"""Caches for work that TextWorld's PDDL engine repeats at each step: games begin and go on several times faster.

The engine translates a problem four times to begin its game, reads every rule of its grammar for each sentence, and
copies all it knows for each word. The caches change neither its text nor what it accepts; tests compare the two.
"""

from copy import copy
from functools import lru_cache
from typing import Any

import fast_downward
from textworld import logic
from textworld.envs.pddl import textgen

_NUM_PROBLEMS = 32
"""Number of cached translations; the games of a group follow each other."""


@lru_cache(maxsize=1)
def patch_caches() -> None:
    """Install the caches in this process."""
    fast_downward.pddl2sas = _translated(fast_downward.pddl2sas)
    textgen._parse_and_convert = _read(textgen._parse_and_convert)
    logic._parse_and_convert = lru_cache(maxsize=4096)(logic._parse_and_convert)
    textgen.copy_context = _copy_of_context


def _translated(translate: Any) -> Any:
    """Return a translator that translates each problem once, and not again for the planner, which is unused."""

    @lru_cache(maxsize=_NUM_PROBLEMS)
    def once(domain: str, problem: str) -> Any:
        return translate(domain, problem)

    return lambda domain, problem, verbose=False, optimize=False: once(domain, problem)


def _read(read: Any) -> Any:
    """Return a cached reader that copies its symbols, because the engine stores a context in each."""
    once = lru_cache(maxsize=4096)(read)
    return lambda *args, **options: [copy(symbol) for symbol in once(*args, **options)]


def _copy_of_context(context: dict[str, Any]) -> dict[str, Any]:
    """Copy only the tables to which names are added; what the names stand for never changes."""
    return context | {name: dict(context[name]) for name in ("variables", "mapping")}
