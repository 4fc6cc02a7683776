"""Sample of dreamt episodes beside their real replays, the most instructive first."""

from collections.abc import Iterable, Sequence

from models.measurement.calibration import as_episode
from schemas.records import Step, Trajectory

_NUM_SAMPLES = 6


def replayed_samples(dreamt: Sequence[Trajectory], replays: Sequence[Sequence[Step]]) -> list[Trajectory]:
    """Return dreamt episodes, each followed by the real episode that its actions lead to.

    Those whose outcome does not hold for real come first, then those with a wrong state, failures and successes, so that
    each kind is there if there is any.
    """
    pairs = [(one, as_episode(one, steps)) for one, steps in zip(dreamt, replays, strict=True) if steps]
    kinds = [[pair for pair in pairs if _kind(*pair) == kind] for kind in range(4)]
    chosen = [*(pair for kind in kinds for pair in kind[:2]), *(pair for kind in kinds for pair in kind[2:])]
    return [episode for pair in chosen[:_NUM_SAMPLES] for episode in pair]


def pairs_of(samples: Iterable[Trajectory]) -> list[tuple[Trajectory, Trajectory]]:
    """Return dreamt episodes with their replays, as `replayed_samples` lists them."""
    one_by_one = iter(samples)
    return list(zip(one_by_one, one_by_one, strict=True))


def _kind(dreamt: Trajectory, replay: Trajectory) -> int:
    """Return how instructive an episode is, from 0 on: wrong outcome, wrong state, failure, success."""
    if dreamt.success != replay.success:
        return 0
    if any(one.step.state != other.step.state for one, other in zip(dreamt.turns, replay.turns, strict=False)):
        return 1
    return 3 if dreamt.success else 2
