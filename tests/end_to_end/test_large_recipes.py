"""Recipes of models too large for this machine, with a small random one of the same architecture in their place."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from models.network.language_model import LanguageModel
from models.text.prompts import PromptFormat
from tests.alfworld import require_games
from tests.command_line import LENIENT_GATE, SMALLER, TOY, lineage_of
from tests.integration.shop_server import shop
from tests.unit.tiny import tiny_network

CORPUS = ["- fridge: closed, in the kitchen\n- you: carry nothing\n open fridge [state] [action] continue success"]


def byte_level_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer that knows none of our markers, as a pretrained model's does."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer, words.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    )
    return PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|end|>", pad_token="<|end|>")


def in_its_place(folder: Path, kind: str) -> tuple[str, ...]:
    """Return changes that put a small random network of an architecture in place of a recipe's."""
    tokenizer = byte_level_tokenizer()
    network = tiny_network(kind=kind, vocab_size=len(tokenizer) + 8)  # Qwen2's tokenizer adds a token of its own
    LanguageModel(network, tokenizer, PromptFormat(tokenizer)).save(folder / kind)
    model = (f"backbone.model={folder / kind}", "backbone.random_init=true", "engine.name=torch")
    return (*TOY, *LENIENT_GATE, *model, "experience.max_new_tokens=48", "rl.group_size=4")


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_qwen3_with_adapters_goes_through_a_whole_cycle(tmp_path):
    changes = (*in_its_place(tmp_path, "qwen3"), *SMALLER, "environment.max_steps=12")
    made = lineage_of(tmp_path, "qwen3-0.6b-lora-1gpu", changes)
    assert made >= {"start", "experience_model", "dream", "sim_to_real"}


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
@pytest.mark.parametrize(("recipe", "kind"), [("qwen2.5-7b-alfworld", "qwen2"), ("alfworld-8b", "llama")])
def test_alfworld_goes_through_a_whole_cycle(tmp_path, monkeypatch, recipe, kind):
    require_games(monkeypatch)
    changes = (*in_its_place(tmp_path, kind), *SMALLER, 'environment.families=["look_at_obj_in_light"]')
    made = lineage_of(tmp_path, recipe, changes)
    assert made >= {"start", "experience_model", "dream", "sim_to_real"}


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_webshop_goes_through_a_whole_cycle_with_a_small_shop(tmp_path):
    changes = (*in_its_place(tmp_path, "llama"), *SMALLER)
    with shop() as server:
        made = lineage_of(tmp_path, "llama-3.1-8b-webshop", changes, DREAMGYM_ENVIRONMENT_URL=server.url)
    assert made >= {"start", "experience_model", "dream", "sim_to_real"}
