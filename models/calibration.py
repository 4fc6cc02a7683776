"""Calibration: does the dream agree with the real environment? (paper, appendix B: epsilon_R and epsilon_P).

Two measures, because each is blind to what the other sees. Replaying dreamt actions for real shows where
a dream grants or refuses wrongly, but not that it ended an episode too early; the gap between dreamt and
real success of the same policy on the same tasks shows that.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from schemas.ports import Environment
from schemas.records import Step, Trajectory

_NUM_SLOTS = 128
"""Episodes that are replayed at a time."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Dream against real on the same tasks; shares between 0 and 1."""

    outcome_agreement: float
    """Dreamt episodes whose real replay ends with the same success: 1 - epsilon_R."""
    state_agreement: float
    """Dreamt steps whose state the real replay confirms: 1 - epsilon_P."""
    dream_success: float
    real_success: float
    """Of the same policy, playing for real."""
    num_replayed_steps: int

    @property
    def gap(self) -> float:
        """Dream minus real success; positive: the dream is too kind."""
        return self.dream_success - self.real_success

    def metrics(self) -> dict[str, float]:
        """For tracking."""
        return {**asdict(self), "dream_real_gap": self.gap}


def replay(dreamt: Sequence[Trajectory], environment: Environment) -> list[list[Step]]:
    """The real steps that the dreamt actions lead to, each episode until it is really done."""
    starts = range(0, len(dreamt), _NUM_SLOTS)
    return [steps for start in starts for steps in _replayed(dreamt[start : start + _NUM_SLOTS], environment)]


def _replayed(dreamt: Sequence[Trajectory], environment: Environment) -> list[list[Step]]:
    environment.reset({slot: trajectory.task for slot, trajectory in enumerate(dreamt)})
    replays: list[list[Step]] = [[] for _ in dreamt]
    for turn in range(max(len(t.turns) for t in dreamt)):
        running = {
            slot: t.turns[turn].action
            for slot, t in enumerate(dreamt)
            if turn < len(t.turns) and not (replays[slot] and replays[slot][-1].done)
        }
        for slot, step in environment.step(running).items():
            replays[slot].append(step)
    return replays


def failed(replay: Sequence[Step]) -> bool:
    """Whether the real environment failed in a replay, which then says nothing about its dream."""
    return bool(replay) and replay[-1].failure is not None


def calibrate(
    dreamt: Sequence[Trajectory], replays: Sequence[Sequence[Step]], real: Sequence[Trajectory]
) -> Calibration:
    """Compare dreamt episodes with their replays, and with real episodes of the same policy on the same tasks.

    Broken dreams are left out of the agreement and of dream success; replays in which the real environment failed, of
    the agreement.
    """
    whole = [(t, steps) for t, steps in zip(dreamt, replays, strict=True) if not t.failure]
    told = [(t, steps) for t, steps in whole if not failed(steps)]
    agreeing = sum(t.success == any(step.success for step in steps) for t, steps in told)
    states = [turn.step.state == step.state for t, steps in told for turn, step in zip(t.turns, steps, strict=False)]
    return Calibration(
        outcome_agreement=agreeing / max(1, len(told)),
        state_agreement=sum(states) / max(1, len(states)),
        dream_success=sum(t.success for t, _ in whole) / max(1, len(whole)),
        real_success=sum(t.success for t in real) / max(1, len(real)),
        num_replayed_steps=sum(map(len, replays)),
    )
