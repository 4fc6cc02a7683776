"""Tokens per second of single-turn rollouts: groups of equal prompts."""

import statistics
from typing import Any

import torch

from tests.benchmarks.network import NUM_WORDS, network, rates

PROMPT, COMPLETION, GROUP, NUM_GROUPS = 128, 64, 8, 4


def prompts() -> list[list[int]]:
    """Return one prompt per group, repeated for its members."""
    generator = torch.Generator().manual_seed(1)
    groups = torch.randint(1, NUM_WORDS, (NUM_GROUPS, PROMPT), generator=generator).tolist()
    return [prompt for prompt in groups for _ in range(GROUP)]


def ours() -> list[float]:
    """Measure the torch engine."""
    from models.generation.torch_engine import TorchEngine, engine_weights
    from schemas.sampling import Sampling

    weights, rows = engine_weights(network()), prompts()

    def work() -> None:
        sessions = TorchEngine(weights, 0).open(len(rows), PROMPT)
        sessions.extend(range(len(rows)), rows)
        sessions.generate(range(len(rows)), Sampling(COMPLETION, ()))

    return rates(work, len(rows) * COMPLETION)


def transformers() -> list[float]:
    """Measure Hugging Face generate with its default cache, in float32 or bfloat16, whichever is faster here."""
    return max((_generate(torch.float32), _generate(torch.bfloat16)), key=statistics.median)


def _generate(dtype: torch.dtype) -> list[float]:
    model, ids = network().to(dtype), torch.tensor(prompts())

    def work() -> None:
        generate(model, ids, torch.ones_like(ids), COMPLETION)

    return rates(work, len(ids) * COMPLETION)


def generate(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, num_tokens: int, *, greedy: bool = False
) -> torch.Tensor:
    """Return `num_tokens` tokens after each prompt, [B, num_tokens]; prompts are padded on the left."""
    with torch.inference_mode():
        whole = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=num_tokens,
            min_new_tokens=num_tokens,
            pad_token_id=0,
            **({"do_sample": False} if greedy else {"do_sample": True, "top_k": 0, "top_p": 1.0}),
        )
    return whole[:, ids.shape[1] :]
