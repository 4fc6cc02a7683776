"""A tokenizer with a chat template, as that of a small instruct model."""

from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

CHATML = (
    "<|begin|>{% for one in messages %}<|im_start|>{{ one['role'] }}\n{{ one['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
CORPUS = ["- fridge: closed, in the kitchen\n- you: carry nothing\n open fridge [state] [action] continue success"]


def byte_level_tokenizer(special_tokens: Sequence[str] = ("<|end|>",), template: str = "") -> PreTrainedTokenizerFast:
    """Return a tokenizer that knows none of our markers, as a pretrained model's does; its texts end with the first token."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=list(special_tokens))
    )
    end = special_tokens[0]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token=end, pad_token=end)
    if template:
        tokenizer.chat_template = template
    return tokenizer


def chat_tokenizer(template: str = CHATML) -> PreTrainedTokenizerFast:
    """Return a tokenizer with this chat template, whose answers end with a token of their own."""
    return byte_level_tokenizer(("<|endoftext|>", "<|begin|>", "<|im_start|>", "<|im_end|>"), template)


def sentencepiece_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer as that of Llama 2, which writes a space before a text and takes it away again."""
    pieces = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    pieces.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    read = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    pieces.decoder = decoders.Sequence(read)
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    pieces.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=400, special_tokens=special))
    return PreTrainedTokenizerFast(tokenizer_object=pieces, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
