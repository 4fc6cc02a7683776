"""Whether a real environment accepts and refuses what its states say that it does."""

from collections.abc import Sequence

from schemas.ports import AdmissibleActions
from schemas.records import Trajectory


def require_as_listed(listed: AdmissibleActions | None, episodes: Sequence[Trajectory]) -> int:
    """What states do not accept is refused, to the letter, and what they accept never is; how often something was refused."""
    assert listed
    num_refused = 0
    for turn in (turn for episode in episodes for turn in episode.turns):
        accepted, is_refused = listed.accepts(turn.state, turn.action), turn.step.state == listed.refused(turn.state)
        assert accepted is None or accepted != is_refused, turn
        num_refused += accepted is False
    return num_refused
