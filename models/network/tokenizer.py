"""A small byte-level tokenizer of our own, for backbones that are trained from scratch.

Common words become one token each, others fall into a few pieces, and every text can be encoded and decoded without
loss. The shipped backbone was trained on invented names, so that no name is privileged. A backbone trained on logs has
a token for each name that is frequent in them, which is then far easier to copy.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from models.text.prompts import END, MARKERS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_WORDS = Regex(r"\n-| ?[A-Za-z]+| ?\d| |\n|[^\sA-Za-z\d]")


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> "PreTrainedTokenizerFast":
    """Train a byte-level BPE tokenizer with the prompt markers as its special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(_WORDS, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(MARKERS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=END, additional_special_tokens=list(MARKERS)
    )
