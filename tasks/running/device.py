"""Where the networks are, and what of this machine changes their numbers."""

import torch

from infra.settings import settings
from models.network.precision import matmul_dtype


def device() -> str:
    """Where the networks are."""
    return settings().device or ("cuda" if torch.cuda.is_available() else "cpu")


def number_settings() -> dict[str, str]:
    """What a cache key holds of the settings: the kind of device, and the precision of its matrix products.

    Numbers of threads and ranks are left out: they change the order of sums, and a result only in its last bits.
    """
    return {"device": torch.device(device()).type, "matmul": str(matmul_dtype(device())).removeprefix("torch.")}


def use_threads() -> None:
    """Let the networks use as many threads as the settings say."""
    torch.set_num_threads(settings().num_threads)
