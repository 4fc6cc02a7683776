"""The head of a causal LM of any architecture, as a network of its own: bias, scale and soft cap of its logits included."""

from copy import copy
from typing import Any

from torch import Tensor, nn
from transformers.modeling_outputs import MoeModelOutputWithPast


def head_of(network: Any) -> nn.Module:
    """Return a causal LM whose body passes its input on, so that it computes logits from last hidden states.

    It shares the network's weights, and none of its registers of modules.
    """
    head = copy(network)
    vars(head)["_modules"] = {**network._modules, network.base_model_prefix: _Given(network.base_model)}
    return head


class _Given(nn.Module):
    """Body of a network that returns the hidden states that it is given; it has the settings of the true one."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        vars(self)["_body"] = body  # a plain attribute, since the body is no part of the head

    def __getattr__(self, name: str) -> Any:
        return getattr(vars(self)["_body"], name)

    @property
    def decoder(self) -> nn.Module:
        """Body within a body, which some architectures call."""
        return self

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> "_Output":
        """Return the given hidden states."""
        return _Output(last_hidden_state=inputs_embeds)  # pyright: ignore[reportArgumentType]


class _Output(MoeModelOutputWithPast):
    """Output of a body, without anything but hidden states: whatever else a head looks for is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)
