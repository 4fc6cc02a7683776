"""Network that a loss trains along with the policy, such as a critic."""

from typing import Any

import torch
from torch import nn

from models.methods.losses import Loss
from models.network.sharding import shard_module
from models.network.trained_parameters import copy_sharing

_SEED = 0
"""Seed of the first weights."""


class OwnNetwork(nn.Module):
    """Network that a loss owns: a head on hidden states, with the network that computes them if it is not the policy."""

    def __init__(self, head: nn.Module, backbone: nn.Module | None) -> None:
        """Join a head and the copy of the policy that it reads; None: it reads the policy."""
        super().__init__()
        self.head, self.backbone = head, backbone

    def trained(self) -> dict[str, nn.Parameter]:
        """Return the trained weights by name; those below an adapter stay as they are."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}


def own_network_of(loss: Loss, policy: Any) -> OwnNetwork | None:
    """Return the network that a loss owns, with the same first weights every time, on the policy's device."""
    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        head = loss.network(policy.config.get_text_config().hidden_size)
    if head is None:
        return None
    head.to(policy.device)
    shard_module(head)
    beneath = (weight for weight in policy.parameters() if not weight.requires_grad)  # those below adapters are shared
    return OwnNetwork(head, copy_sharing(policy, beneath) if loss.copies_policy else None)
