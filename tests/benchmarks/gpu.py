"""Throughput of the trainer and the torch engine on one GPU, against what the device can do.

    python -m tests.benchmarks.gpu            Qwen3 of 0.6B, 1.7B and 4B whole, and of 8B with adapters; random weights
    python -m tests.benchmarks.gpu tiny       the same in seconds on any machine: to see that it runs

Useful work of an update is 6 operations per weight and computed token, or 4 where only adapters learn, plus 12 per
layer, width and position attended to (PaLM, arXiv 2204.02311, appendix B). A token cannot be decoded faster than
weights and cache are read. The limits of the device are measured in the same run: a large matrix product, and a large
copy.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import Qwen3Config, Qwen3ForCausalLM

from models.generation.torch_engine import TorchEngine, engine_weights
from models.methods.advantages.grpo import group_advantages
from models.network.trained_parameters import make_trainable
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Tokens
from schemas.sampling import Sampling
from tests.training import group_of, rl, trainer_of

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GROUP = 8


@dataclass(frozen=True)
class Bounds:
    """Limits of a device: operations of bfloat16 and bytes, per second."""

    operations: float
    num_bytes: float


@dataclass(frozen=True)
class Size:
    """Dimensions of a network, and the lengths of its streams."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int = 151_936
    head_size: int = 128
    tied: bool = True
    lora_rank: int = 0
    lengths: tuple[int, ...] = (4096, 16_384)


SIZES = {
    "tiny": Size(64, 2, 4, 2, 128, vocabulary=512, head_size=16, lengths=(256,)),
    "0.6b": Size(1024, 28, 16, 8, 3072),
    "1.7b": Size(2048, 28, 16, 8, 6144),
    "4b": Size(2560, 36, 32, 8, 9728),
    "8b": Size(4096, 36, 32, 8, 12_288, tied=False, lora_rank=16),
}


def main(names: list[str]) -> None:
    """Measure each size and print the table."""
    bounds = measured_bounds(8192 if DEVICE == "cuda" else 512)
    table = Table(title=title(bounds))
    for heading in ("size", "what", "tokens/s", "of the bound", "peak memory, GB"):
        table.add_column(heading, justify="left" if heading in ("size", "what") else "right")
    for name in names:
        size = SIZES[name]
        network = network_of(size)
        for length in size.lengths:
            add_row(table, name, f"GRPO update, {length} tokens a stream", *update(network, size, length, bounds))
        add_row(table, name, "decoding, 64 rows after 512 tokens", *decoding(network, size, bounds))
    Console(width=120).print(table)


def title(bounds: Bounds) -> str:
    """Return the name of the device, and its limits."""
    device = torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU here"
    return f"{device}: {bounds.operations / 1e12:,.1f} TFLOP/s, {bounds.num_bytes / 1e12:,.2f} TB/s"


def measured_bounds(width: int) -> Bounds:
    """Measure a bfloat16 matrix product of this width, and a copy of 32 such matrices, which reads and writes."""
    one, other = torch.randn(2, width, width, device=DEVICE, dtype=torch.bfloat16)
    many = torch.randn(32, width, width, device=DEVICE, dtype=torch.bfloat16)
    copy = torch.empty_like(many)
    product_s, copy_s = seconds_of(lambda: one @ other), seconds_of(lambda: copy.copy_(many))
    return Bounds(2 * width**3 / product_s, 2 * many.nbytes / copy_s)


def add_row(table: Table, name: str, what: str, rate: float, share: float) -> None:
    """Add a row, with the peak memory since the last row."""
    peak = torch.cuda.max_memory_allocated() / 1e9 if DEVICE == "cuda" else float("nan")
    table.add_row(name, what, f"{rate:,.0f}", f"{share:.1%}", f"{peak:.1f}")
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()


def network_of(size: Size) -> Any:
    """Return a network with random weights that is ready to be trained."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        head_dim=size.head_size,
        max_position_embeddings=32_768,
        tie_word_embeddings=size.tied,
        eos_token_id=None,
        pad_token_id=0,
        bos_token_id=None,
    )
    with torch.device(DEVICE):
        network = Qwen3ForCausalLM(config).eval()
    make_trainable(network, TrainingRecipe(lora_rank=size.lora_rank, gradient_checkpointing=True), seed=0)
    return network.to(DEVICE)


def update(network: Any, size: Size, length: int, bounds: Bounds) -> tuple[float, float]:
    """Return the computed tokens per second of one group's update, and the share of peak that is useful work."""
    prompt = length // 4
    ids = torch.randint(1, size.vocabulary, (GROUP, length), generator=torch.Generator().manual_seed(1))
    ids[:, :prompt] = ids[0, :prompt]
    mask = [False] * prompt + [True] * (length - prompt)
    streams = [Tokens(row, mask, [0.0] * length) for row in ids.tolist()]
    group = group_of(streams, group_advantages([1, 0] * (GROUP // 2)))
    trainer = trainer_of(network, None, rl(updates_per_round=1, learning_rate=1e-6), dtype=torch.bfloat16)
    seconds = seconds_of(lambda: trainer.train([group]))
    computed = prompt + GROUP * (length - prompt)
    per_weight = 4 if size.lora_rank else 6
    weights = sum(weight.numel() for weight in network.parameters())
    attention = 12 * size.layers * size.heads * size.head_size * length / 2
    return computed / seconds, computed * (per_weight * weights + attention) / seconds / bounds.operations


def decoding(
    network: Any, size: Size, bounds: Bounds, num_rows: int = 64, context: int = 512, num_new: int = 128
) -> tuple[float, float]:
    """Return the sampled tokens per second, and the share of the time that reading weights and cache takes at least."""
    engine = TorchEngine(engine_weights(network), 0)
    prompts = torch.randint(
        1, size.vocabulary, (num_rows, context), generator=torch.Generator().manual_seed(2)
    ).tolist()

    def seconds_for(max_new_tokens: int) -> float:
        def work() -> None:
            sessions = engine.open(num_rows, context + num_new)
            sessions.extend(range(num_rows), prompts)
            sessions.generate(range(num_rows), Sampling(max_new_tokens, -1))

        return seconds_of(work)

    per_step = (seconds_for(num_new) - seconds_for(1)) / (num_new - 1)
    cache = num_rows * (context + num_new / 2) * size.layers * 2 * size.kv_heads * size.head_size
    num_bytes = 2 * (sum(weight.numel() for weight in network.parameters()) + cache)
    return num_rows / per_step, num_bytes / bounds.num_bytes / per_step


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of three calls, after one to warm up."""
    work()
    seconds = []
    for _ in range(3):
        wait_for_device()
        began = time.perf_counter()
        work()
        wait_for_device()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def wait_for_device() -> None:
    """Wait until the device has finished: work on a GPU is only begun when a call returns."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    main(sys.argv[1:] or ["0.6b", "1.7b", "4b", "8b"])
