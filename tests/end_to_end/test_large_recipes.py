"""Recipes of models that are too large for this machine, with a small random one of the same architecture in their place."""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from models.backbone import LanguageModel
from models.prompts import PromptFormat
from tests.command_line import LENIENT_GATE, TOY, changed, dreamgym
from tests.unit.tiny import tiny_network

CORPUS = ["- fridge: closed, in the kitchen\n- you: carry nothing\n open fridge [state] [action] continue success"]


def byte_level_tokenizer() -> PreTrainedTokenizerFast:
    """One that knows none of our markers, as a pretrained model's does."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    )
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|end|>", pad_token="<|end|>")


@pytest.fixture
def backbone(tmp_path) -> Path:
    tokenizer = byte_level_tokenizer()
    network = tiny_network(kind="qwen3", vocab_size=len(tokenizer))
    LanguageModel(network, tokenizer, PromptFormat(tokenizer)).save(tmp_path / "qwen3")
    return tmp_path / "qwen3"


@pytest.mark.e2e
def test_qwen3_with_adapters_goes_through_a_whole_cycle(tmp_path, backbone):
    smaller = (f"backbone.model={backbone}", "backbone.random_init=true", "experience.max_new_tokens=48")
    arguments = changed(*TOY, *LENIENT_GATE, *smaller, "grpo.group_size=4")
    done = dreamgym(tmp_path, "run", "qwen3-0.6b-lora-1gpu", *arguments, "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    assert set(json.loads(done.stdout)["lineage"]) >= {"start", "experience_model", "dream", "sim_to_real"}
