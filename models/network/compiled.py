"""Compilation for GPUs of what lies between two matrix products; a processor computes it as it is written."""

from collections.abc import Callable
from functools import cache, wraps
from importlib.util import find_spec
from typing import ParamSpec, TypeVar

import torch

Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")


def compiled_on_gpu(function: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
    """Return a function that is compiled for calls with tensors on a GPU, where Triton is installed.

    The first such call takes seconds, and serves all sizes. TORCH_COMPILE_DISABLE=1 switches compilation off.
    """

    @cache
    def fused() -> Callable[Inputs, Result]:
        return torch.compile(function, dynamic=True)

    @wraps(function)
    def chosen(*inputs: Inputs.args, **options: Inputs.kwargs) -> Result:
        on_gpu = any(isinstance(one, torch.Tensor) and one.is_cuda for one in inputs)
        return (fused() if on_gpu and find_spec("triton") else function)(*inputs, **options)

    return chosen
