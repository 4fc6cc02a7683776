"""Throughput of the trainer and the torch engine on one GPU, against what the device can do.

    python -m tests.benchmarks.gpu            Qwen3 of 0.6B, 1.7B and 4B whole, of 4B and 8B with adapters; random weights
    python -m tests.benchmarks.gpu tiny       the same in seconds on any machine: to see that it runs

Useful work of an update is 6 operations per weight and computed token, or 4 where only adapters learn, plus 12 per
layer, width and position attended to (PaLM, arXiv 2204.02311, appendix B). A token cannot be decoded faster than
weights and cache are read. The limits of the device are measured in the same run: a large matrix product, and a large
copy.

A dream round has 16 groups of 8 episodes of 12 turns. A turn is a prompt of 500 tokens and an action of 40, and a prompt of
800 to the experience model and a prediction of 100; every action is trained on. Two turns and one group are measured.
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
NUM_GROUPS, NUM_TURNS = 16, 12
ACTION, PREDICTION = (500, 40), (800, 100)
"""Tokens of a prompt, and of what is sampled after it."""


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
    "4b-adapters": Size(2560, 36, 32, 8, 9728, lora_rank=16, lengths=(4096,)),
    "8b-adapters": Size(4096, 36, 32, 8, 12_288, tied=False, lora_rank=16, lengths=(4096,)),
}


def main(names: list[str]) -> None:
    """Measure each size and print the table."""
    bounds = measured_bounds(8192 if DEVICE == "cuda" else 512)
    table = Table(title=title(bounds))
    for heading in ("size", "what", "seconds", "tokens/s", "of the bound", "peak memory, GB"):
        table.add_column(heading, justify="left" if heading in ("size", "what") else "right")
    for name in names:
        size = SIZES[name]
        network = network_of(size)
        for length in size.lengths:
            add_row(table, name, f"GRPO update, {length} tokens a stream", *update(network, size, length, bounds))
        add_row(table, name, "decoding, 64 rows after 512 tokens", *decoding(network, size, bounds))
        add_round(table, name, network, size)
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


def add_row(table: Table, name: str, what: str, seconds: float, rate: float, share: float | None = None) -> None:
    """Add a row, with the peak memory since the last row."""
    peak = torch.cuda.max_memory_allocated() / 1e9 if DEVICE == "cuda" else float("nan")
    row = [f"{seconds:.4g}", f"{rate:,.0f}", "" if share is None else f"{share:.1%}", f"{peak:.1f}"]
    table.add_row(name, what, *row)
    Console(width=120).print(name, what, *row)  # a run that is stopped has shown what it measured
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


def update(network: Any, size: Size, length: int, bounds: Bounds) -> tuple[float, float, float]:
    """Return seconds and computed tokens per second of one group's update, and the share of peak that is useful work."""
    prompt = length // 4
    seconds = seconds_of_update(network, size, prompt, length - prompt, GROUP)
    computed = prompt + GROUP * (length - prompt)
    per_weight = 4 if size.lora_rank else 6
    weights = sum(weight.numel() for weight in network.parameters())
    attention = 12 * size.layers * size.heads * size.head_size * length / 2
    return seconds, computed / seconds, computed * (per_weight * weights + attention) / seconds / bounds.operations


def seconds_of_update(network: Any, size: Size, num_shared: int, num_own: int, num_streams: int) -> float:
    """Return the seconds of an update on streams that begin alike and end with tokens of their own, half of them won."""
    length = num_shared + num_own
    ids = torch.randint(1, size.vocabulary, (num_streams, length), generator=torch.Generator().manual_seed(1))
    ids[:, :num_shared] = ids[0, :num_shared]
    mask = [False] * num_shared + [True] * num_own
    streams = [Tokens(row, mask, [0.0] * length) for row in ids.tolist()]
    group = group_of(streams, group_advantages([1, 0] * (num_streams // 2)))
    trainer = trainer_of(network, None, rl(updates_per_round=1, learning_rate=1e-6), dtype=torch.bfloat16)
    return seconds_of(lambda: trainer.train([group]))


def decoding(
    network: Any, size: Size, bounds: Bounds, num_rows: int = 64, context: int = 512, num_new: int = 128
) -> tuple[float, float, float]:
    """Return seconds of a step, sampled tokens per second, and the share that reading weights and cache takes at least."""
    engine = TorchEngine(engine_weights(network), 0)
    more, one = (seconds_of_answers(engine, size, num_rows, context, new) for new in (num_new, 1))
    per_step = (more - one) / (num_new - 1)
    cache = num_rows * (context + num_new / 2) * size.layers * 2 * size.kv_heads * size.head_size
    num_bytes = 2 * (sum(weight.numel() for weight in network.parameters()) + cache)
    return per_step, num_rows / per_step, num_bytes / bounds.num_bytes / per_step


def add_round(table: Table, name: str, network: Any, size: Size) -> None:
    """Add the parts of a dream round and their sum."""
    engine, num_episodes = TorchEngine(engine_weights(network), 0), NUM_GROUPS * GROUP
    parts = {
        "acting": NUM_TURNS * seconds_of_answers(engine, size, num_episodes, *ACTION),
        "predicting": NUM_TURNS * seconds_of_answers(engine, size, num_episodes, *PREDICTION),
        "updating": NUM_GROUPS * seconds_of_update(network, size, 0, sum(ACTION), GROUP * NUM_TURNS),
    }
    parts["all"] = sum(parts.values())
    for part, seconds in parts.items():
        num_tokens = num_episodes * NUM_TURNS * {"predicting": sum(PREDICTION)}.get(part, sum(ACTION))
        add_row(table, name, f"a dream round of {num_episodes} episodes: {part}", seconds, num_tokens / seconds)


def seconds_of_answers(engine: TorchEngine, size: Size, num_rows: int, context: int, num_new: int) -> float:
    """Return the seconds in which an engine reads prompts and answers each with this number of tokens."""
    generator = torch.Generator().manual_seed(2)
    prompts = torch.randint(1, size.vocabulary, (num_rows, context), generator=generator).tolist()

    def answer() -> None:
        sessions = engine.open(num_rows, context + num_new)
        sessions.extend(range(num_rows), prompts)
        sessions.generate(range(num_rows), Sampling(num_new, ()))

    return seconds_of(answer)


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of three calls, or of as many as begin within ten seconds, after one to warm up."""
    work()
    seconds = list[float]()
    while len(seconds) < 3 and sum(seconds) < 10:
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
    main(sys.argv[1:] or [name for name in SIZES if name != "tiny"])
