"""Seconds until a run may go on after an update, with its policy stored at once or in the background.

    HF_HUB_DISABLE_PROGRESS_BARS=1 python -m tests.benchmarks.storing

A policy of 94 million random weights with the state of its optimiser, 1.1 GB, in a temporary folder; a minute or two.
"""

import os
import statistics
import tempfile
import time
from contextlib import nullcontext

import torch
from rich.console import Console
from rich.table import Table

from infra.context import background_blobs
from models.network.language_model import new_tiny_model
from tasks.running.artifacts import forget, put_model
from tests.benchmarks.network import tokenizer
from tests.fresh import HOME_VARIABLE, reset_context

_NUM_PAIRS = 3
_SIZES = {"hidden_size": 768, "num_layers": 13, "num_heads": 12, "max_positions": 4_096}


def main() -> None:
    """Print the table."""
    found = [_seconds(in_background=which) for _ in range(_NUM_PAIRS) for which in (False, True)]
    table = Table("stored", "seconds until the run may go on", "seconds until all is stored")
    for name, some in (("at once", found[::2]), ("in the background", found[1::2])):
        table.add_row(name, *(f"{statistics.median(times):.1f}" for times in zip(*some, strict=True)))
    Console().print(table)


def _seconds(*, in_background: bool) -> tuple[float, float]:
    model = new_tiny_model(tokenizer(), **_SIZES, seed=0)
    weights = list(model.network.parameters())
    state = {
        f"{n}.{slot}": torch.randn_like(one) for n, one in enumerate(weights) for slot in ("exp_avg", "exp_avg_sq")
    }
    with tempfile.TemporaryDirectory() as home:
        os.environ[HOME_VARIABLE] = home
        reset_context()
        began = time.monotonic()
        with background_blobs() if in_background else nullcontext():
            put_model(model, optimizer_state=state)
            may_go_on = time.monotonic() - began
        stored = time.monotonic() - began
    forget()
    return may_go_on, stored


if __name__ == "__main__":
    main()
