"""Checkpoints of a long training, so that an interrupted one goes on from there.

A checkpoint is one safetensors file of whole tensors; any number of ranks can write it, and any number go on with it.
"""

import hashlib
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.network.sharding import all_reduce_sum, distribute_like, full_tensor, rank
from models.training.own_network import OwnNetwork

SUFFIX = ".checkpoint"
_WEIGHT, _SLOT, _OWN = "weight.", "optimizer.", "own."


class Checkpoints:
    """Checkpoints of one training, in a folder of its own; the latest counts.

    They are written in the background. As a context manager it ends when the last one is.
    """

    def __init__(self, folder: Path, every_s: float = 600.0) -> None:
        """Set the folder, which is created with the first checkpoint.

        Args:
            folder: Folder, the same for all ranks.
            every_s: Minimum number of seconds between two checkpoints.
        """
        self._folder, self._every_s = folder, every_s
        self._last_s = time.monotonic()
        self._thread = ThreadPoolExecutor(1, "checkpoints")
        self._written: Future[None] | None = None

    def __enter__(self) -> "Checkpoints":
        """Return the checkpoints."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wait for the last checkpoint, also if the training was interrupted."""
        self._thread.shutdown()
        if error is None:
            self._require_written()

    def resume(self, network: Any, optimizer: torch.optim.Optimizer) -> int:
        """Load the latest intact checkpoint, if there is one; return its number of updates, else 0."""
        for path in sorted(self._folder.glob(f"*{SUFFIX}"), reverse=True):
            num_updates, _, sha256 = path.stem.partition("-")
            if _sha256_of(path) == sha256:
                state = load_file(path)
                load_weights(network, state)
                load_optimizer(optimizer, optimizer_state_in(state))
                return int(num_updates)
        return 0

    def keep(self, network: Any, optimizer: torch.optim.Optimizer, num_updates: int) -> None:
        """Copy the state if a checkpoint is due, and write it while the training goes on, after the one before it.

        Raises:
            OSError: the one before it could not be written.
        """
        is_due = rank() == 0 and time.monotonic() - self._last_s >= self._every_s
        if all_reduce_sum({"due": is_due})["due"] == 0:
            return
        self._require_written()  # so that at most one copy is in memory, which for a large network is tens of gigabytes
        tensors = state_of(network, optimizer)
        if rank() == 0:
            shared = next(network.parameters()).device.type == "cpu"
            copies = {name: tensor.clone() for name, tensor in tensors.items()} if shared else tensors
            self._written = self._thread.submit(self._replace, num_updates, copies)
        self._last_s = time.monotonic()

    def _require_written(self) -> None:
        if self._written:
            self._written.result()

    def _replace(self, num_updates: int, tensors: dict[str, Tensor]) -> None:
        """Write a checkpoint, and delete the earlier ones."""
        self._folder.mkdir(parents=True, exist_ok=True)
        earlier, unfinished = list(self._folder.glob(f"*{SUFFIX}")), self._folder / "unfinished"
        save_file(tensors, unfinished)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.rename(self._folder / f"{num_updates:08d}-{_sha256_of(unfinished)}{SUFFIX}")
        for path in earlier:
            path.unlink(missing_ok=True)


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state_of(
    network: Any, optimizer: torch.optim.Optimizer | None, own_network: OwnNetwork | None = None
) -> dict[str, Tensor]:
    """Return a training's state: trained weights and the optimiser's state, as whole tensors in the CPU's memory.

    Every rank must call this; only the first gets the tensors, the others get empty ones.
    """
    trained = {name: weight for name, weight in network.named_parameters() if weight.requires_grad}
    weights = {f"{_WEIGHT}{name}": _for_the_first(weight) for name, weight in trained.items()}
    slots = optimizer_state(optimizer, own_network) if optimizer else {}
    return weights | {f"{_SLOT}{name}": tensor for name, tensor in slots.items()}


def load_weights(network: Any, state: dict[str, Tensor]) -> None:
    """Load the weights of a training's state, on any number of ranks."""
    _load(network, _under(_WEIGHT, state))


def _load(network: Any, tensors: dict[str, Tensor]) -> None:
    weights = dict(network.named_parameters())
    with torch.no_grad():
        for name, tensor in tensors.items():
            weights[name].copy_(distribute_like(tensor.to(weights[name].device), weights[name]))


def optimizer_state_in(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the optimiser's part of a training's state."""
    return _under(_SLOT, state)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def optimizer_state(optimizer: torch.optim.Optimizer, own_network: OwnNetwork | None = None) -> dict[str, Tensor]:
    """Return the optimiser's state by index of the weight and name of the slot, on the first rank like `state_of`.

    The weights of a network that a loss owns are part of it.
    """
    slots = optimizer.state_dict()["state"]
    own = own_network.trained().items() if own_network else ()
    return {f"{_OWN}{name}": _for_the_first(weight) for name, weight in own} | {
        f"{index}.{name}": _for_the_first(torch.as_tensor(value))
        for index, state in sorted(slots.items())  # every rank must gather in the same order
        for name, value in sorted(state.items())
    }


def load_optimizer(
    optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], own_network: OwnNetwork | None = None
) -> None:
    """Load the result of `optimizer_state`, on any number of ranks."""
    if own_network:
        _load(own_network, _under(_OWN, tensors))
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith(_OWN):
            continue
        index, name = key.split(".", 1)
        like = weights[int(index)]
        state.setdefault(int(index), {})[name] = (
            distribute_like(tensor.to(like.device), like) if tensor.shape == like.shape else tensor
        )
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _for_the_first(tensor: Tensor) -> Tensor:
    together = full_tensor(tensor.detach())
    return together.cpu().contiguous() if rank() == 0 else torch.empty(0)
