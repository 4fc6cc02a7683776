"""Loss: what an update minimises on the action tokens, and what must be computed together for it."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from models.methods.method import Method, OptionsT, open_method
from models.methods.streams import TrainingGroup, Unit
from schemas.recipes.methods import LossRecipe


@dataclass(frozen=True, slots=True)
class Batch:
    """Action tokens of a micro-batch.

    Shapes: N action tokens, in the order of groups, streams and tokens; S streams; H hidden size; K kept values.
    """

    logprobs_N: Tensor
    """Log-probabilities under the policy being trained; gradients flow through them."""
    old_logprobs_N: Tensor
    """Log-probabilities under the policy at the start of the round."""
    sampled_logprobs_N: Tensor
    """Log-probabilities from the engine, with its weights at the time of sampling."""
    reference_logprobs_N: Tensor | None
    """Log-probabilities under the reference policy, if the loss needs them."""
    advantages_N: Tensor
    """Advantage of each token's turn."""
    stream_lengths: list[int]
    """Number of action tokens of each stream; they add up to N."""
    stream_episodes: list[int]
    """Number of each stream's episode in the micro-batch, [S], counted from 0."""
    turn_lengths: list[int]
    """Number of tokens of each action, episode by episode and turn by turn; they add up to N."""
    turn_episodes: list[int]
    """Number of each action's episode in the micro-batch."""
    num_updates: int = 0
    """Number of updates before this one, since the optimiser was new."""
    hidden_NH: Tensor | None = None
    """Hidden state that each token was predicted from, in float32, if the loss owns a network: of the policy, or of the copy
    that the network reads."""
    network: nn.Module | None = None
    """Network that the loss owns."""
    kept_NK: Tensor | None = None
    """Values that `Loss.prepare` returned."""

    def per_stream(self, values_N: Tensor) -> Tensor:
        """Return the sum over the action tokens of each stream, [S]."""
        return self._summed(values_N, list(range(len(self.stream_lengths))))

    def per_episode(self, values_N: Tensor) -> Tensor:
        """Return the sum over the action tokens of each episode, [episodes]."""
        return self._summed(values_N, self.stream_episodes)

    def _summed(self, values_N: Tensor, numbers_S: list[int]) -> Tensor:
        lengths = torch.tensor(self.stream_lengths, device=values_N.device)
        numbers_N = torch.tensor(numbers_S, device=values_N.device).repeat_interleave(lengths)
        return values_N.new_zeros(max(numbers_S) + 1).index_add(0, numbers_N, values_N)


class Loss(Method[OptionsT]):
    """Port of methods that say what an update minimises.

    Cross-entropy (ce) and the KL to the reference policy (ref_kl) are computed by the trainer, on tokens that `marked`
    gives a weight. Each of the three terms is divided by its own count in the whole update.
    """

    unit: ClassVar[Unit] = "token"
    """Unit that the loss is a mean over, and that it needs whole in one micro-batch."""

    @property
    def needs_reference(self) -> bool:
        """True if the loss, or a token that it marks, needs the reference policy's log-probabilities."""
        return False

    @property
    def corrects_staleness(self) -> bool:
        """True if rollouts may come from an older policy than the one that the round began with."""
        return False

    def marked(self, group: TrainingGroup) -> TrainingGroup:
        """Return a group with weights for cross-entropy or KL on some of its tokens."""
        return group

    def network(self, hidden_size: int) -> nn.Module | None:
        """Return a network to train along with the policy, such as a value head on its hidden states; None for none."""
        del hidden_size

    @property
    def copies_policy(self) -> bool:
        """True if the network that the loss owns reads a copy of the policy, which is trained with it, not the policy."""
        return False

    @property
    def owns_network(self) -> bool:
        """True if the loss trains a network of its own along with the policy."""
        return type(self).network is not Loss.network

    def prepare(self, batches: Sequence[Batch], shares: Sequence[float]) -> list[Tensor]:
        """Return values of each token to keep from the start of the round, [N, K] for each micro-batch.

        Called once per update, without gradients, with the weights that the round began with; never if not overridden.

        Args:
            batches: Micro-batches of this rank.
            shares: Factor of each in sums over ranks (`all_reduce_sum`): 1, or 0 if it only repeats another one.
        """
        del batches, shares
        return []

    @property
    def prepares(self) -> bool:
        """True if the loss keeps values from the start of a round."""
        return type(self).prepare is not Loss.prepare

    @abstractmethod
    def rl(self, batch: Batch) -> tuple[Tensor | None, dict[str, float]]:
        """Return the loss summed over the units of a micro-batch, None if there is none, and sums to log."""


def with_reference_kl(group: TrainingGroup, weight: float) -> TrainingGroup:
    """Return a group with this weight of the KL to the reference policy at every action token; 0 for none."""
    if weight == 0:
        return group
    streams = [
        replace(stream, ref_kl_weights=[weight * is_action for is_action in stream.tokens.is_action])
        for stream in group.streams
    ]
    return replace(group, streams=streams)


def open_loss(recipe: LossRecipe) -> Loss:
    """Return the loss that a recipe names."""
    return open_method(Loss, recipe)
