"""Token streams for tests of methods."""

from schemas.records import Tokens


def tokens(num_actions: int, first: int = 10) -> Tokens:
    """Return a stream of two prompt tokens and one action of this many tokens."""
    ids = [1, 2, *range(first, first + num_actions)]
    return Tokens(ids, [False, False, *[True] * num_actions], [0.0] * len(ids))
