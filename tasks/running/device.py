"""Device of the networks, and the settings of this machine that change their numbers."""

import torch

from infra.settings import settings
from models.network.precision import matmul_dtype


def device() -> str:
    """Return the device of the networks."""
    return settings().device or ("cuda" if torch.cuda.is_available() else "cpu")


def number_settings() -> dict[str, str]:
    """Return the settings in a cache key: the kind of device, and the precision of its matrix products.

    Numbers of threads and ranks are left out: they change the order of sums, and a result only in its last bits.
    """
    return {"device": torch.device(device()).type, "matmul": str(matmul_dtype(device())).removeprefix("torch.")}


def use_threads() -> None:
    """Let the networks use the number of threads in the settings."""
    torch.set_num_threads(settings().num_threads)
