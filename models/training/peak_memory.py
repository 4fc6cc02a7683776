"""Peak memory of a computation, counted as its tensors come and go."""

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only


class PeakMemory(TorchDispatchMode):
    """Bytes of the tensors on one device, while it is entered: those that are alive, and the most at once.

    Differs from torch's MemTracker, which counts the same: weights may be frozen, and modules computed more than once.
    """

    def __init__(self, device: torch.device) -> None:
        """Begin with nothing; see `count` for tensors that exist already."""
        super().__init__()
        self._device = device
        self._counted = weakref.WeakSet[torch.UntypedStorage]()
        self.alive = self.most = 0

    def count(self, tensor: Tensor) -> None:
        """Count a tensor until it is freed; its storage counts once, however many tensors share it."""
        storage = tensor.untyped_storage()
        if tensor.device != self._device or storage in self._counted:
            return
        self._counted.add(storage)
        weakref.finalize(storage, self._freed, storage.nbytes())
        self.alive += storage.nbytes()
        self.most = max(self.most, self.alive)

    def _freed(self, num_bytes: int) -> None:
        self.alive -= num_bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute as usual, and count what comes out."""
        found = func(*args, **kwargs or {})
        tree_map_only(Tensor, self.count, found)
        return found
