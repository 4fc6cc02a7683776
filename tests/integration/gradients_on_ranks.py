"""One rank's part in computing losses and gradients, in float32, for test_ranks."""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.distributed.elastic.multiprocessing.errors import record

from models.methods.streams import TrainingGroup, TrainingStream
from models.network.lora import is_adapter
from models.network.sharding import rank, shard
from models.network.trained_parameters import make_trainable
from models.training.adapted_reference import AdaptedReference
from models.training.checkpoints import state_of
from models.training.rank import joined, leave
from models.training.sft import Example, backward
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Tokens
from tests.training import group_of, rl, trainer_of
from tests.unit.tiny import tiny_network

EXAMPLES = [Example.of((list(range(1, 9 + n)), False), (list(range(20, 24 + 3 * n)), True)) for n in range(3)]
"""Examples of different lengths and shares of targets; three, so that two ranks have unequal shares."""


def groups() -> list[TrainingGroup]:
    """Return three groups of different lengths, so that one rank repeats one."""
    return [
        group_of(
            [
                Tokens([*range(1, 6 + n), 10 + m, 3, 4], [False] * (5 + n) + [True, False, True], [0.0] * (8 + n))
                for m in range(2)
            ],
            [1.0, -1.0],
        )
        for n in range(3)
    ]


def observed() -> TrainingGroup:
    """Return a group without actions, of which one rank has none."""
    tokens = Tokens([2, 7, 1, 8], [False] * 4, [0.0] * 4)
    return TrainingGroup([TrainingStream(tokens, [], ce_weights=[0.0, 0.0, 0.5, 0.5])])


def losses_and_gradients(
    kind: str, training: TrainingRecipe, stored: str
) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    """Return the losses and the updated weights of a fine-tuning batch, and of rounds of GRPO and PPO.

    The networks are stored in the dtype `stored`. The optimizer is SGD with a learning rate of 1, so that an update
    subtracts the gradients themselves.
    """
    losses, states = {}, {}
    for name, work in (("sft", _sft), ("grpo", _grpo), ("ppo", _ppo)):
        network = tiny_network(kind=kind).to(getattr(torch, stored))
        make_trainable(network, training, seed=0)
        shard(network)
        optimizer = torch.optim.SGD(network.parameters(), lr=1.0)
        losses[name] = work(network, optimizer)
        states |= {f"{name}.{key}": tensor for key, tensor in state_of(network, None).items()}
    return losses, states


def _sft(network, optimizer) -> float:
    loss = backward(network, EXAMPLES, torch.float32, max_tokens=64)
    optimizer.step()
    return loss


def _grpo(network, optimizer) -> float:
    reference = _reference_of(network)
    options = rl(loss={"kl_coefficient": 0.1}, updates_per_round=1, learning_rate=1.0, max_grad_norm=1e9)
    trainer = trainer_of(network, reference, options, tokens_per_batch=16)
    trainer.optimizer = optimizer
    metrics = trainer.train([*groups(), observed()])
    return metrics["loss"] + metrics["kl"] + metrics["ce"] + metrics["grad_norm"]


def _reference_of(network):
    """Return another network, or other adapters where adapters are trained."""
    adapters = {name: weight for name, weight in network.named_parameters() if is_adapter(name)}
    if adapters:
        draw = torch.Generator().manual_seed(2)
        return AdaptedReference(
            network, {name: torch.randn(one.shape, generator=draw) / 9 for name, one in adapters.items()}
        )
    stored = network.model.embed_tokens.weight.dtype
    reference = tiny_network(seed=1, kind=network.config.model_type).to(stored).requires_grad_(False)
    shard(reference)
    return reference


def _ppo(network, optimizer) -> float:
    options = rl(loss={"name": "ppo", "kl_coefficient": 0.0}, updates_per_round=1, learning_rate=1.0, max_grad_norm=1e9)
    trainer = trainer_of(network, None, options, tokens_per_batch=16)
    trainer.optimizer = optimizer
    metrics = trainer.train(groups())
    return metrics["loss"] + metrics["value_loss"] + metrics["grad_norm"]


@record
def main(folder: Path) -> None:
    given = json.loads((folder / "job.json").read_text())
    with joined():
        found, tensors = losses_and_gradients(given["kind"], TrainingRecipe(**given["training"]), given["stored"])
        if rank() == 0:
            save_file(tensors, folder / "trained.safetensors", {"losses": json.dumps(found)})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave()
