"""Sampling for a refit of the experience model: dreams that err are played for real more often.

Source: policy-aware refitting of world models (arXiv 2605.29032).
Differs: tasks are sampled instead of single states; an episode's error is the mean over its transitions.
"""

from collections.abc import Sequence

from schemas.records import Step, Trajectory
from schemas.state_text import changes_between

_EPSILON = 0.05


def transition_errors(dreamt: Trajectory, replayed: Sequence[Step]) -> list[float]:
    """Return the error of each dreamt transition that was replayed: 0 where it holds, at most 1.5.

    The error is 1 if done or success differ, plus 1 / (1 + lines that differ) if the state does: a state that is wrong
    in one line misleads more than one that is wrong in all, which is not mistaken for true.
    """
    pairs = zip((turn.step for turn in dreamt.turns), replayed, strict=False)
    return [_error(step, truth) for step, truth in pairs]


def _error(step: Step, truth: Step) -> float:
    outcome = float((step.done, step.success) != (truth.done, truth.success))
    num_lines = len(changes_between(truth.state, step.state).splitlines()) if step.state != truth.state else 0
    return outcome + (1 / (1 + num_lines) if step.state != truth.state else 0.0)


def sampling_shares(errors: Sequence[float], epsilon: float = _EPSILON) -> list[float]:
    """Return sampling shares, proportional to error plus epsilon.

    Example: [0, 1, 1] -> [0.0233, 0.4884, 0.4884].
    """
    total = sum(errors) + epsilon * len(errors)
    return [(error + epsilon) / total for error in errors]
