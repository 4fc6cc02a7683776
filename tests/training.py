"""Groups and trainers for tests of policy updates."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from models.methods.advantages.grpo import Grpo, GrpoOptions
from models.methods.groupings.task import Task
from models.methods.losses import Batch, open_loss
from models.methods.losses.clipped import Clipped, ClippedOptions
from models.methods.method import NoOptions
from models.methods.rewards.outcome import Outcome
from models.methods.scoring import Scoring
from models.methods.streams import TrainingGroup, TrainingStream
from models.training.policy_trainer import PolicyTrainer
from schemas.recipes.learning import RlRecipe
from schemas.recipes.methods import LossRecipe
from schemas.records import Tokens


def group_of(tokens: Sequence[Tokens], advantages: Sequence[float], group_id: str = "group") -> TrainingGroup:
    """Return a group of episodes of one stream each, with the same advantage for all its actions."""
    streams = [
        TrainingStream(one, [advantage] * _num_actions(one), number)
        for number, (one, advantage) in enumerate(zip(tokens, advantages, strict=True))
    ]
    return TrainingGroup(streams, list(advantages), group_id)


def _num_actions(tokens: Tokens) -> int:
    return sum(now and not before for before, now in pairwise([False, *tokens.is_action]))


def rl(*, loss: dict[str, Any] | None = None, **fields: Any) -> RlRecipe:
    """Return the settings of an update without warm-up or KL term, but for these fields."""
    chosen = {"kl_coefficient": 0.0} if not loss or loss.get("name", "clipped") == "clipped" else {}
    plain = {"warmup_updates": 0, "temperature": 1.0, **fields}
    return RlRecipe(**plain, loss=LossRecipe(**chosen | (loss or {})))


def trainer_of(
    network: Any,
    reference: Any | None,
    options: RlRecipe,
    tokens_per_batch: int = 16_000,
    dtype: torch.dtype = torch.float32,
) -> PolicyTrainer:
    """Return a trainer that minimises the loss that the settings name."""
    loss = open_loss(options.loss)
    needed = reference if loss.needs_reference else None
    return PolicyTrainer(network, needed, loss, options, tokens_per_batch, dtype)


def scoring(*, mask_truncated: bool = False, format_penalty: float = 0.0, **options: Any) -> Scoring:
    """Return outcome rewards with the paper's advantages, but for these options."""
    advantage = Grpo(GrpoOptions(**{"negative_scale": 1.0, **options}))
    return Scoring(Task(NoOptions()), Outcome(NoOptions()), advantage, mask_truncated, format_penalty)


def clipped(batch: Batch, **options: Any) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the clipped loss of a batch without a KL term, but for these options."""
    return Clipped(ClippedOptions(**{"kl_coefficient": 0.0, **options})).rl(batch)


def batch_of(
    logprobs: torch.Tensor,
    old: torch.Tensor,
    advantages: torch.Tensor,
    reference: torch.Tensor | None = None,
    sampled: torch.Tensor | None = None,
    lengths: Sequence[int] = (),
    episodes: Sequence[int] = (),
) -> Batch:
    """Return a batch of these tokens; of one stream with one action, as sampled by the old policy, unless said otherwise."""
    lengths = list(lengths or [len(logprobs)])
    episodes = list(episodes or range(len(lengths)))
    sampled = old if sampled is None else sampled
    return Batch(logprobs, old, sampled, reference, advantages, lengths, episodes, lengths, episodes)
