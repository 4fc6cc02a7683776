"""What TextWorld's PDDL engine does anew at each step, done once: a game begins and goes on several times faster.

It translates a problem four times to begin its game once, reads every rule of its grammar whenever it says a sentence, and
copies all that is known for each word of it. What it says and accepts stays the same; tests compare the two.
"""

from copy import copy
from functools import lru_cache
from typing import Any

import fast_downward
from textworld import logic
from textworld.envs.pddl import textgen

_NUM_PROBLEMS = 32
"""Whose translations are kept: the games of a group are one after the other."""


@lru_cache(maxsize=1)
def patch_caches() -> None:
    """From now on, in this process."""
    fast_downward.pddl2sas = _translated(fast_downward.pddl2sas)
    textgen._parse_and_convert = _read(textgen._parse_and_convert)
    logic._parse_and_convert = lru_cache(maxsize=4096)(logic._parse_and_convert)
    textgen.copy_context = _copy_of_context


def _translated(translate: Any) -> Any:
    """A problem is translated once; not again for the planner, whom nobody asks."""

    @lru_cache(maxsize=_NUM_PROBLEMS)
    def once(domain: str, problem: str) -> Any:
        return translate(domain, problem)

    return lambda domain, problem, verbose=False, optimize=False: once(domain, problem)


def _read(read: Any) -> Any:
    """Symbols are told their context, so everybody gets their own."""
    once = lru_cache(maxsize=4096)(read)
    return lambda *args, **options: [copy(symbol) for symbol in once(*args, **options)]


def _copy_of_context(context: dict[str, Any]) -> dict[str, Any]:
    """Names are added to a context; what they stand for is never changed."""
    return context | {name: dict(context[name]) for name in ("variables", "mapping")}
