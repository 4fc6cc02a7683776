"""How a reasoning trace ends."""

from schemas.records import Turn


def verdict(turn: Turn) -> str:
    """What came of a turn's action, in a word."""
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "refused" if turn.step.state == turn.state else "works"
