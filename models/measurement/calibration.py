"""Calibration: agreement of the dream with the real environment (paper, appendix B: epsilon_R and epsilon_P).

There are two measures of episodes, because each misses what the other sees. Replaying dreamt actions for real shows where
a dream grants or refuses wrongly, but not that it ended an episode too early. The gap between dreamt and real
success of the same policy on the same tasks shows that. The epsilons themselves are errors of single steps
(models/measurement/one_step.py).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from models.measurement.agreement import Outcomes
from models.measurement.one_step import OneStepErrors, compared_steps, one_step_errors
from schemas.ports import Environment
from schemas.records import Step, Trajectory, Turn

_NUM_SLOTS = 128
"""Maximum number of episodes replayed at a time."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Comparison of dream and real on the same tasks; shares are between 0 and 1."""

    outcome_agreement: float
    """Share of dreamt episodes whose real replay ends with the same success."""
    outcome_kappa: float
    """Agreement beyond chance: where success is rare, dreams that know nothing agree, too."""
    outcome_kappa_high: float
    """Largest kappa that is plausible for this number of episodes; the gate checks this one."""
    win_precision: float | None
    """Share of dreamt wins whose replay wins; None without dreamt wins."""
    win_recall: float | None
    """Share of winning replays whose dream won; None without winning replays."""
    state_agreement: float
    """Share of dreamt steps whose state the real replay confirms, also after the first that it does not."""
    dream_success: float
    real_success: float
    """Success of the same policy in all its real episodes."""
    dream_real_gap: float
    """Dream minus real success, where the dream did not break; positive if the dream is too kind."""
    num_replayed_steps: int
    one_step: OneStepErrors | None
    """Errors of single predictions, with Lemma 1's bound on the gap; None where no step could be compared."""

    def metrics(self) -> dict[str, float]:
        """Return the values that could be measured, for tracking."""
        measured = asdict(self)
        del measured["one_step"]
        known = {name: value for name, value in measured.items() if value is not None}
        return known | (self.one_step.metrics() if self.one_step else {})


def replay(dreamt: Sequence[Trajectory], environment: Environment) -> list[list[Step]]:
    """Return the real steps that the dreamt actions lead to, each episode until it is really done."""
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


def as_episode(dreamt: Trajectory, steps: Sequence[Step]) -> Trajectory:
    """Return the real steps that dreamt actions lead to, as an episode."""
    states = [dreamt.turns[0].state, *(step.state for step in steps)]
    turns = [
        Turn(state, turn.action, step, thought=turn.thought)
        for state, turn, step in zip(states, dreamt.turns, steps, strict=False)
    ]
    source = "replay of dreamt actions"
    return Trajectory(dreamt.task, "real", turns, failure=steps[-1].failure, truncated=dreamt.truncated, source=source)


def failed(replay: Sequence[Step]) -> bool:
    """Return whether the real environment failed in a replay, which then says nothing about its dream."""
    return bool(replay) and replay[-1].failure is not None


def calibrate(
    dreamt: Sequence[Trajectory], replays: Sequence[Sequence[Step]], real: Sequence[Trajectory]
) -> Calibration:
    """Compare dreamt episodes with their replays, and with real episodes of the same policy on the same tasks.

    Broken dreams are left out of the agreement and of dream success, and their real counterparts out of the gap: dreams
    seldom break on easy tasks. Replays in which the real environment failed are left out of the agreement.

    Args:
        dreamt: Dreamt episodes.
        replays: Real steps that each dreamt episode's actions lead to.
        real: Real episode of the same task for each, in the same order; then any others.
    """
    whole = [place for place, one in enumerate(dreamt) if not one.failure]
    compared = [(dreamt[place], replays[place]) for place in whole if not failed(replays[place])]
    outcomes = Outcomes.count((one.success, any(step.success for step in steps)) for one, steps in compared)
    states = [
        turn.step.state == step.state for t, steps in compared for turn, step in zip(t.turns, steps, strict=False)
    ]
    dream_success = _success([dreamt[place] for place in whole])
    return Calibration(
        outcome_agreement=outcomes.agreement,
        outcome_kappa=outcomes.kappa,
        outcome_kappa_high=outcomes.kappa_high,
        win_precision=outcomes.win_precision,
        win_recall=outcomes.win_recall,
        state_agreement=sum(states) / max(1, len(states)),
        dream_success=dream_success,
        real_success=_success(real),
        dream_real_gap=dream_success - _success([real[place] for place in whole]),
        num_replayed_steps=sum(map(len, replays)),
        one_step=one_step_errors(
            [pair for one, steps in compared for pair in compared_steps(one.turns, steps)],
            [len(one.turns) for one in real],
        ),
    )


def _success(episodes: Sequence[Trajectory]) -> float:
    return sum(one.success for one in episodes) / max(1, len(episodes))
