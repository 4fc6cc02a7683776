"""Reference policy that differs from the trained policy only in its adapters, so that one base serves both."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from models.network.sharding import distribute_like


class AdaptedReference:
    """Adapters of a reference policy, for the network whose own adapters are trained."""

    def __init__(self, network: Any, adapters: Mapping[str, Tensor]) -> None:
        """Keep the reference's adapters as the network keeps its own: on its device, sharded if it is.

        Args:
            network: Network whose adapters are trained.
            adapters: Weights of the reference's adapters, whole, by the names of the network's own.
        """
        weights = dict(network.named_parameters())
        self._network = network
        self._pairs = [
            (weights[name], distribute_like(adapter.to(weights[name].device), weights[name]))
            for name, adapter in adapters.items()
        ]

    @contextmanager
    def in_place(self) -> Iterator[Any]:
        """Yield the network as the reference policy; afterwards it has its own adapters again."""
        self._swap()
        try:
            yield self._network
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for weight, other in self._pairs:
            kept = weight.clone()
            weight.copy_(other)
            other.copy_(kept)
