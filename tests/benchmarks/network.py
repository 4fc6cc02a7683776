"""Parts that the contestants share: a small network with random weights, its tokenizer, and a timer."""

import random
import time
from collections.abc import Callable
from typing import Any

import torch

from models.text.prompts import MARKERS, PromptFormat

NUM_WORDS = 2048
_PAD = "[pad]"
_VOCABULARY = NUM_WORDS + 16
"""Number of words and markers."""


def network(sureness: float = 1) -> Any:
    """Return a network of 3.4 million weights, the same for every contestant.

    `sureness` multiplies its logits, so that it acts alike more often.
    """
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=_VOCABULARY,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        eos_token_id=None,
        pad_token_id=0,
        bos_token_id=None,
    )
    made = Qwen3ForCausalLM(config).eval()
    made.model.norm.weight.data *= sureness
    return made


def tokenizer() -> Any:
    """Return a tokenizer whose words are the numbers from 0."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {str(number): number for number in range(NUM_WORDS)}
    vocabulary |= {marker: NUM_WORDS + number for number, marker in enumerate((*MARKERS, _PAD))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="0"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token=MARKERS[0], pad_token=_PAD)


def endless_format() -> PromptFormat:
    """Return our prompt format without an end token: all actions are as long as they may be."""
    format = PromptFormat(tokenizer())
    format.end_id = -1
    return format


def text(num_words: int, seed: object) -> str:
    """Return random words, the same for a seed."""
    rng = random.Random(str(seed))
    return " ".join(str(rng.randrange(1, NUM_WORDS)) for _ in range(num_words))


def rates(work: Callable[[], object], units: int, repeats: int = 5) -> list[float]:
    """Return the units per second of each repeat, after a warm-up."""
    work()
    measured = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        measured.append(units / (time.perf_counter() - started))
    return measured
