"""Steps of a dream beside the real ones from the same state, their errors, and Lemma 1's bound (paper, appendix B)."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from schemas.records import Step, Turn

R_MAX = 1.0
"""Largest reward of a step; only the step that succeeds has one."""


@dataclass(frozen=True, slots=True)
class OneStepErrors:
    """Mean errors of single predictions in real states that the current policy meets.

    Differs: the lemma's epsilons hold in every state, and these are means over the compared ones, which lie before a
    dream goes astray. The state error is the share of wrong next states, an upper estimate of the total variation where
    the environment is deterministic.
    """

    reward: float
    """Mean absolute difference of rewards: epsilon_R."""
    state: float
    """Share of steps with another next state, or another end of the episode: epsilon_P."""
    num_steps: int
    """Number of compared steps."""
    horizon: float
    """Effective horizon 1 / (1 - gamma): mean length of the real episodes."""

    @property
    def bound(self) -> float:
        """Bound of Lemma 1 on the gap of dreamt and real return (Eq. 26); Theorem 1 (Eq. 9) loses twice this.

        Differs: returns here are not discounted, and gamma = 1 - 1 / mean episode length stands for the discount.
        """
        gamma = 1 - 1 / self.horizon
        return self.reward / (1 - gamma) + 2 * gamma * R_MAX * self.state / (1 - gamma) ** 2

    def metrics(self) -> dict[str, float]:
        """Return the values for tracking."""
        return {
            "one_step_reward_error": self.reward,
            "one_step_state_error": self.state,
            "num_compared_steps": self.num_steps,
            "effective_horizon": self.horizon,
            "lemma1_bound": self.bound,
        }


def one_step_errors(compared: Sequence[tuple[Turn, Step]], lengths: Sequence[int]) -> OneStepErrors | None:
    """Return the errors of dreamt steps against real ones from the same state; None without steps or episodes.

    Args:
        compared: Dreamt turns with the real steps (compared_steps).
        lengths: Number of steps of each real episode of the policy.
    """
    if not compared or not any(lengths):
        return None
    rewards = [abs(turn.step.reward - real.reward) for turn, real in compared]
    differing = [(turn.step.state, turn.step.done) != (real.state, real.done) for turn, real in compared]
    return OneStepErrors(fmean(rewards), fmean(differing), len(compared), max(1.0, fmean(lengths)))


def compared_steps(dreamt: Sequence[Turn], real: Sequence[Step]) -> list[tuple[Turn, Step]]:
    """Return dreamt turns with the real steps of the same actions, up to and including the first with another state.

    From there on, dream and replay act in different states, and a difference is no error of one step. Steps without a
    prediction, or in which the real environment failed, end the comparison and are left out.

    Args:
        dreamt: Turns of a dreamt episode.
        real: Real steps that its actions lead to, from the same first state.
    """
    compared: list[tuple[Turn, Step]] = []
    for turn, step in zip(dreamt, real, strict=False):
        if turn.step.failure or step.failure:
            break
        compared.append((turn, step))
        if turn.step.state != step.state:
            break
    return compared
