"""Caches for work that TextWorld's PDDL engine repeats at each step: games begin and go on several times faster.

The engine translates a problem four times to begin its game, parses its grammar anew, reads every rule of it for each
sentence, and copies all it knows for each word. The caches change neither its text nor what it accepts; tests compare the two.
"""

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from copy import copy
from functools import lru_cache
from importlib.metadata import version
from io import StringIO
from typing import Any

import fast_downward
from platformdirs import user_cache_path
from textworld import logic
from textworld.envs.pddl import logic as pddl_logic
from textworld.envs.pddl import textgen

from infra.files.kept_texts import KeptTexts

_NUM_PROBLEMS = 32
"""Number of cached translations and grammars; the games of a group follow each other."""


@lru_cache(maxsize=1)
def patch_caches() -> None:
    """Install the caches in this process."""
    fast_downward.pddl2sas = _translated(fast_downward.pddl2sas)
    pddl_logic._parse_and_convert = lru_cache(maxsize=_NUM_PROBLEMS)(pddl_logic._parse_and_convert)
    textgen._parse_and_convert = _read(textgen._parse_and_convert)
    logic._parse_and_convert = lru_cache(maxsize=4096)(logic._parse_and_convert)
    textgen.copy_context = _copy_of_context


def _translated(translate: Callable[[str, str], Any]) -> Any:
    """Return a translator that translates each problem once for all processes, and not again for the unused planner."""
    kept = KeptTexts(user_cache_path("dreamgym") / "alfworld" / f"translated-{version('fast_downward_textworld')}")

    @lru_cache(maxsize=_NUM_PROBLEMS)
    def once(domain: str, problem: str) -> tuple[Any, str]:
        if translation := kept.find(domain, problem):
            return _parsed(domain, problem), translation
        task, translation = translate(domain, problem)
        kept.keep(translation, domain, problem)
        return task, translation

    return lambda domain, problem, verbose=False, optimize=False: once(domain, problem)


def _parsed(domain: str, problem: str) -> Any:
    """Return a problem as the translator normalises it, without its warnings about facts that are listed twice."""
    lists, tasks, normalize = _translator()
    with redirect_stdout(StringIO()):
        task = tasks.parse_task(*(lists.parse_nested_list(text.split("\n")) for text in (domain, problem)))
        normalize(task)
    return task


@lru_cache(maxsize=1)
def _translator() -> tuple[Any, Any, Any]:
    """Import parts of the translator, which reads the command line while it is imported."""
    arguments, sys.argv = sys.argv, ["translate.py", "domain", "problem"]
    try:
        from fast_downward.translate.normalize import normalize
        from fast_downward.translate.pddl_parser import lisp_parser, parsing_functions
    finally:
        sys.argv = arguments
    return lisp_parser, parsing_functions, normalize


def _read(read: Any) -> Any:
    """Return a cached reader that copies its symbols, because the engine stores a context in each."""
    once = lru_cache(maxsize=4096)(read)
    return lambda *args, **options: [copy(symbol) for symbol in once(*args, **options)]


def _copy_of_context(context: dict[str, Any]) -> dict[str, Any]:
    """Copy only the tables to which names are added; what the names stand for never changes."""
    return context | {name: dict(context[name]) for name in ("variables", "mapping")}
