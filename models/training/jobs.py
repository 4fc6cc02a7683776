"""Trainings as data: one rank runs them in this process, or several ranks in theirs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import TypeAdapter
from torch import Tensor

from models.methods.groups import ScoredGroup
from models.methods.objective import GrpoOptions
from models.network.precision import matmul_dtype
from models.training.checkpoints import Checkpoints, load_optimizer
from models.training.policy_trainer import GrpoTrainer
from models.training.sft import Example, SftProgress, fit, repeated
from schemas.recipes.recipe import TrainingRecipe


@dataclass(frozen=True, slots=True)
class SftJob:
    """Supervised fine-tuning."""

    examples: list[Example]
    tokens_per_update: int
    tokens_per_batch: int
    num_updates: int
    learning_rate: float

    def run(self, network: Any, seed: int, on_update: Callable[[SftProgress], None], checkpoints: Checkpoints) -> None:
        """Train in place, starting from the latest checkpoint."""
        torch.manual_seed(seed)
        batches = repeated(self.examples, self.tokens_per_update, seed)
        fit(
            network,
            batches,
            self.num_updates,
            self.learning_rate,
            on_update,
            checkpoints,
            max_tokens=self.tokens_per_batch,
        )


@dataclass(frozen=True, slots=True)
class PolicyUpdateJob:
    """Round of GRPO on fresh groups, at least one."""

    groups: list[ScoredGroup]
    options: GrpoOptions

    def run(
        self, network: Any, reference: Any, optimizer_state: dict[str, Tensor]
    ) -> tuple[dict[str, float], torch.optim.Optimizer]:
        """Train in place.

        Args:
            network: Policy.
            reference: Network that the KL term refers to.
            optimizer_state: State to continue from; empty to start afresh.

        Returns:
            Metrics, and the optimiser.
        """
        trainer = GrpoTrainer(network, reference, self.options, matmul_dtype(network.device))
        load_optimizer(trainer.optimizer, optimizer_state)
        return trainer.train(self.groups), trainer.optimizer


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
