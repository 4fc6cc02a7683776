"""Trainings as data: one rank runs them in this process, or several ranks in theirs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from models.methods.losses import open_loss
from models.methods.streams import TrainingGroup
from models.network.precision import matmul_dtype
from models.network.sharding import are_finite
from models.training.adapted_reference import AdaptedReference
from models.training.checkpoints import Checkpoints, load_optimizer
from models.training.policy_trainer import PolicyTrainer
from models.training.sft import Example, SftProgress, fit, repeated
from schemas.errors import TrainingError
from schemas.recipes.learning import RlRecipe
from schemas.recipes.networks import TrainingRecipe


@dataclass(frozen=True, slots=True)
class SftJob:
    """Supervised fine-tuning."""

    examples: list[Example]
    tokens_per_update: int
    tokens_per_batch: int
    num_updates: int
    learning_rate: float
    relu_share: float = 0.0
    """Share of ReLU in stochastic activations."""

    def run(self, network: Any, seed: int, on_update: Callable[[SftProgress], None], checkpoints: Checkpoints) -> None:
        """Train in place, starting from the latest checkpoint."""
        torch.manual_seed(seed)
        batches = repeated(self.examples, self.tokens_per_update, seed)
        with checkpoints:
            fit(
                network,
                batches,
                self.num_updates,
                self.learning_rate,
                on_update,
                checkpoints,
                max_tokens=self.tokens_per_batch,
                relu_share=self.relu_share,
                seed=seed,
            )
        _require_finite_weights(network, "sft.learning_rate of its section")


@dataclass(frozen=True, slots=True)
class PolicyUpdateJob:
    """Round of updates on fresh groups, at least one."""

    groups: list[TrainingGroup]
    options: RlRecipe
    round: int
    tokens_per_batch: int

    def run(
        self, network: Any, reference: Any | AdaptedReference, optimizer_state: dict[str, Tensor]
    ) -> tuple[dict[str, float], PolicyTrainer]:
        """Train in place.

        Args:
            network: Policy.
            reference: Reference policy: a network, or other adapters of the policy.
            optimizer_state: State to continue from; empty to start afresh.

        Returns:
            Metrics, and the trainer with its optimiser.
        """
        loss = open_loss(self.options.loss)
        reference, dtype = reference if loss.needs_reference else None, matmul_dtype(network.device)
        trainer = PolicyTrainer(network, reference, loss, self.options, self.tokens_per_batch, dtype)
        load_optimizer(trainer.optimizer, optimizer_state, trainer.own_network)
        metrics = trainer.train(self.groups, self.round)
        _require_finite_weights(network, "rl.learning_rate")
        return metrics, trainer


def _require_finite_weights(network: nn.Module, rate: str) -> None:
    """Refuse to keep a network that its last update spoilt.

    Raises:
        TrainingError: a trained weight is not finite.
    """
    if not are_finite(one.detach() for one in network.parameters() if one.requires_grad):
        raise TrainingError(f"after its last update a network has weights that are no finite numbers: lower {rate}")


@dataclass(frozen=True, slots=True)
class Job:
    """Training, with the settings that make a network ready for it."""

    work: SftJob | PolicyUpdateJob
    training: TrainingRecipe
    seed: int
    checkpoint_every_s: float
    """Minimum number of seconds between checkpoints of a fine-tuning."""

    def dumps(self) -> bytes:
        """Serialise to JSON."""
        return TypeAdapter(Job).dump_json(self)

    @staticmethod
    def loads(content: bytes) -> "Job":
        """Parse the result of `dumps`."""
        return TypeAdapter(Job).validate_json(content)
