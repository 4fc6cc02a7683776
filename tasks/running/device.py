"""Device of the networks: which one, what it is called, and its settings that change numbers."""

import platform

import torch

from infra.settings import settings
from models.network.precision import bfloat16_instructions, matmul_dtype


def device() -> str:
    """Return the device of the networks."""
    return settings().device or ("cuda" if torch.cuda.is_available() else "cpu")


def device_name() -> str:
    """Return the name of the GPU, or of the processor with its instructions for bfloat16.

    Devices that differ in it sum in another order, so the same run may end in other weights there.
    """
    if torch.device(device()).type == "cuda":
        return torch.cuda.get_device_name(device())
    name = str(torch.cpu.get_capabilities().get("cpu_name", platform.machine()))
    return " ".join([name, *bfloat16_instructions()])


def number_settings() -> dict[str, str]:
    """Return the settings in a cache key: the kind of device, and the precision of its matrix products.

    Numbers of threads and ranks are left out: they change the order of sums, and a result only in its last bits.
    """
    return {"device": torch.device(device()).type, "matmul": str(matmul_dtype(device())).removeprefix("torch.")}


def use_threads() -> None:
    """Let the networks use the number of threads in the settings."""
    torch.set_num_threads(settings().num_threads)
