"""Check that a real environment accepts and refuses the actions that its states say it does."""

from collections.abc import Sequence

from schemas.ports import AdmissibleActions
from schemas.records import Trajectory


def require_as_listed(listed: AdmissibleActions | None, episodes: Sequence[Trajectory]) -> int:
    """Check each step against the actions that its state lists, and return how many were refused.

    An action that the state does not accept leads to exactly the state that `refused` writes; an accepted one never
    does.
    """
    assert listed
    num_refused = 0
    for turn in (turn for episode in episodes for turn in episode.turns):
        accepted, is_refused = listed.accepts(turn.state, turn.action), turn.step.state == listed.refused(turn.state)
        assert accepted is None or accepted != is_refused, turn
        num_refused += accepted is False
    return num_refused
