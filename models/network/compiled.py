"""Compilation for GPUs of what lies between two matrix products; a processor computes it as it is written."""

from collections.abc import Callable
from functools import cache, wraps
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")

_NARROWEST = 512
"""Width below which compiling, which takes half a minute, costs more than it saves in a run."""


def compiled_on_gpu(function: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
    """Return a function that is compiled at its first call with a wide tensor on a GPU, for tensors of all lengths.

    The last axis of the first tensor among its inputs decides what is wide. Where Triton is not installed, or with
    TORCH_COMPILE_DISABLE=1, nothing is compiled.
    """

    @cache
    def fused() -> Callable[Inputs, Result]:
        return torch.compile(function, dynamic=True) if find_spec("triton") else function

    @wraps(function)
    def chosen(*inputs: Inputs.args, **options: Inputs.kwargs) -> Result:
        x = next(one for one in inputs if isinstance(one, Tensor))
        return (fused() if x.is_cuda and x.shape[-1] >= _NARROWEST else function)(*inputs, **options)

    return chosen
