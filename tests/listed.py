"""Whether a real environment refuses what its states do not list, and answers as a dream then does without asking its model."""

from collections.abc import Sequence

from schemas.ports import Refusal
from schemas.records import Trajectory


def require_refused_for_real(refusal: Refusal | None, episodes: Sequence[Trajectory]) -> int:
    """What states say that they do not accept leads to the very state that is foretold; how often that was."""
    assert refusal
    foretold = [(refusal(turn.state, turn.action), turn) for episode in episodes for turn in episode.turns]
    refused = [(state, turn) for state, turn in foretold if state]
    for state, turn in refused:
        assert (turn.step.state, turn.step.done) == (state, False), turn.action
    return len(refused)
