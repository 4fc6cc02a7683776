"""Backbones that cannot be what they claim are refused before they are used."""

import pytest
from transformers import AutoTokenizer

from models.network.language_model import load_architecture, load_model
from schemas.errors import InputError
from tasks.backbones.find_backbone import SHIPPED
from tests.unit.tiny import tiny_network


@pytest.mark.parametrize("load", [load_model, load_architecture])
def test_a_tokenizer_of_another_model_is_refused(tmp_path, load):
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED / "textworld-tiny")
    tiny_network(vocab_size=len(tokenizer) - 1).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match=rf"has a token {len(tokenizer) - 1}, its network knows {len(tokenizer) - 1}"):
        load(tmp_path)


def test_a_network_may_have_room_for_more_tokens_than_its_tokenizer_knows(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED / "textworld-tiny")
    tiny_network(vocab_size=len(tokenizer) + 64).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_model(tmp_path).format.end_id == tokenizer.eos_token_id


def test_a_tokenizer_that_cannot_end_a_text_is_refused(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED / "textworld-tiny")
    tokenizer.eos_token = None
    tiny_network(vocab_size=len(tokenizer)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="no token that ends a text"):
        load_model(tmp_path)
