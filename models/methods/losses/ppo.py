"""PPO with a critic: advantages by GAE over the values of a head on the policy (arXiv 1707.06347, 1506.02438).

Shapes: N action tokens; U units of credit, which are actions or their tokens; H hidden size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from models.methods.losses import Batch
from models.methods.losses.clipped import Clipped, ClippedOptions
from models.network.sharding import all_reduce_sum

_ADVANTAGE, _RETURN, _VALUE = range(3)
_EPSILON = 1e-8


class PpoOptions(ClippedOptions):
    """Options of PPO."""

    credit: Literal["turn", "token"] = "turn"
    """Unit of credit. turn: a value of each state, before the first token of an action. token: before every token."""
    discount: float = Field(default=1.0, gt=0, le=1)
    """gamma: factor on the value after each unit."""
    trace_decay: float = Field(default=0.95, ge=0, le=1)
    """lambda of GAE: 1 compares returns with values, 0 trusts the critic about all but one unit."""
    value_clip: float = Field(default=0.5, gt=0)
    """Maximum change of a value within a round that lowers its loss."""
    value_coefficient: float = Field(default=0.5, gt=0)
    """Weight of the critic's loss."""
    critic: Literal["head", "copy"] = "head"
    """head: a value head on the policy. copy: one on a copy of the policy, trained apart; memory for a second network."""
    critic_warmup: int = Field(default=0, ge=0)
    """Number of first updates that train the critic only."""
    critic_trains_policy: bool = True
    """Let the critic's loss move the policy's weights below a value head, too."""


class Ppo(Clipped):
    """PPO: a critic is the baseline. Use it with the advantage `critic`.

    Source: paper, Eq. 2; GAE is Eq. 16 of arXiv 1506.02438. Text of the environment is no unit: the trace passes
        from the last token of an action to the first one of the next.
    Differs: the critic is a linear head on the policy unless `critic` says `copy`; an episode that reached the step
        limit ends with value 0, since a dream always runs to an outcome.
    """

    Options = PpoOptions
    needs: ClassVar[Mapping[str, str]] = {"advantage": "critic"}
    options: PpoOptions

    def network(self, hidden_size: int) -> nn.Module:
        """Return a value head that says 0 until it is trained."""
        head = nn.Linear(hidden_size, 1)
        nn.init.zeros_(head.weight)
        nn.init.zeros_(head.bias)
        return head

    @property
    def copies_policy(self) -> bool:
        """True if the critic has a network of its own."""
        return self.options.critic == "copy"

    def prepare(self, batches: Sequence[Batch], shares: Sequence[float]) -> list[Tensor]:
        """Return whitened advantage, return, and value of each token, [N, 3]: those of its unit."""
        prepared = [self._credited(batch) for batch in batches]
        mean, deviation = _statistics([one[:, _ADVANTAGE] for one in prepared], shares)
        for one in prepared:
            one[:, _ADVANTAGE] = (one[:, _ADVANTAGE] - mean) / (deviation + _EPSILON)
        return prepared

    def rl(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Return the losses of policy and critic, summed over action tokens, and sums to log."""
        assert batch.kept_NK is not None
        advantages_N, returns_N, old_values_N = batch.kept_NK.unbind(1)
        is_warming = batch.num_updates < self.options.critic_warmup
        policy, sums = super().rl(replace(batch, advantages_N=advantages_N))
        on_policy = not self.copies_policy
        values_N = _values(batch, detached=on_policy and (is_warming or not self.options.critic_trains_policy))
        errors_N = clipped_value_loss(values_N, old_values_N, returns_N, self.options.value_clip)
        units = _units(batch, self.options.credit)
        critic = (errors_N[units.first_U] * units.lengths_U).sum()
        sums |= {"value_loss": float(critic.detach()), "value": float(old_values_N.sum())}
        return self.options.value_coefficient * critic + (policy * 0.0 if is_warming else policy), sums

    def _credited(self, batch: Batch) -> Tensor:
        """Return advantage, return and value of each token's unit, [N, 3]."""
        units = _units(batch, self.options.credit)
        values_U = _values(batch, detached=True)[units.first_U]
        advantages = gae(
            units.rewards, values_U.tolist(), units.episodes, self.options.discount, self.options.trace_decay
        )
        advantages_U = values_U.new_tensor(advantages)
        credit_U3 = torch.stack([advantages_U, advantages_U + values_U, values_U], 1)
        return credit_U3.repeat_interleave(units.lengths_U, 0)


@dataclass(frozen=True, slots=True)
class _Units:
    """Units of credit of a micro-batch."""

    lengths_U: Tensor
    """Number of tokens."""
    first_U: Tensor
    """Index of the first token."""
    rewards: list[float]
    episodes: list[int]


def _units(batch: Batch, credit: Literal["turn", "token"]) -> _Units:
    device = batch.advantages_N.device
    lengths = torch.tensor(batch.turn_lengths, device=device)
    last = lengths.cumsum(0) - 1
    if credit == "turn":
        return _Units(lengths, last - lengths + 1, batch.advantages_N[last].tolist(), batch.turn_episodes)
    rewards_N = torch.zeros_like(batch.advantages_N)
    rewards_N[last] = batch.advantages_N[last]
    episodes = torch.tensor(batch.turn_episodes, device=device).repeat_interleave(lengths).tolist()
    places = torch.arange(len(rewards_N), device=device)
    return _Units(torch.ones_like(places), places, rewards_N.tolist(), episodes)


def _values(batch: Batch, *, detached: bool) -> Tensor:
    """Return the value before each token, [N]."""
    assert batch.network is not None
    assert batch.hidden_NH is not None
    return batch.network(batch.hidden_NH.detach() if detached else batch.hidden_NH)[:, 0]


def gae(
    rewards: Sequence[float], values: Sequence[float], episodes: Sequence[int], discount: float, trace_decay: float
) -> list[float]:
    """Return generalised advantage estimates: A_t = r_t + gamma V_(t+1) - V_t + gamma lambda A_(t+1).

    Args:
        rewards: Reward of each unit, in order.
        values: Value before each unit; it is 0 after the last one of an episode.
        episodes: Number of each unit's episode, whose units are in a row.
        discount: gamma.
        trace_decay: lambda.
    """
    found = [0.0] * len(rewards)
    value = advantage = 0.0
    for unit in reversed(range(len(rewards))):
        if unit + 1 == len(rewards) or episodes[unit + 1] != episodes[unit]:
            value = advantage = 0.0
        advantage = rewards[unit] + discount * value - values[unit] + discount * trace_decay * advantage
        found[unit], value = advantage, values[unit]
    return found


def clipped_value_loss(values: Tensor, old_values: Tensor, returns: Tensor, clip: float) -> Tensor:
    """Return half the larger squared error of each value and of the value within clip of the old one."""
    near = old_values + (values - old_values).clamp(-clip, clip)
    return torch.maximum((values - returns) ** 2, (near - returns) ** 2) / 2


def _statistics(tensors: Sequence[Tensor], shares: Sequence[float]) -> tuple[float, float]:
    """Return mean and standard deviation over all ranks."""
    counted = [(share, one.double()) for one, share in zip(tensors, shares, strict=True)]
    sums = {
        "count": sum(share * one.numel() for share, one in counted),
        "total": sum(share * float(one.sum()) for share, one in counted),
        "squares": sum(share * float((one**2).sum()) for share, one in counted),
    }
    count, total, squares = all_reduce_sum(sums).values()
    return total / count, max(0.0, squares / count - (total / count) ** 2) ** 0.5
