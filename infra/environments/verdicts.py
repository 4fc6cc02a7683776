"""Verdict at the end of a reasoning trace."""

from schemas.records import Turn


def verdict(turn: Turn) -> str:
    """Return the outcome of a turn's action in one word: wins, loses, refused or works."""
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "refused" if turn.step.state == turn.state else "works"
