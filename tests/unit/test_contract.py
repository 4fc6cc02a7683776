"""Contract of a tokenizer: it gives back what policy and experience model are taught to write, or is refused."""

import pytest
from tokenizers import normalizers
from transformers import AutoTokenizer

from models.network.language_model import load_model
from models.text.prompts import PromptFormat
from schemas.errors import InputError
from schemas.recipes.recipe import Recipe
from tasks.backbones.find_backbone import SHIPPED
from tasks.planning.contract import require_contract
from tests.chat import byte_level_tokenizer, chat_tokenizer, sentencepiece_tokenizer

PLAIN = Recipe(name="plain")
CHAT = Recipe(
    name="chat", policy={"template": "chat", "think": "short"}, experience={"template": "chat"}, start={"from": "base"}
)


def test_the_shipped_tokenizer_and_those_of_pretrained_models_keep_it():
    require_contract(load_model(SHIPPED / "textworld-tiny").format, PLAIN)
    require_contract(PromptFormat(byte_level_tokenizer()), PLAIN)
    require_contract(PromptFormat(chat_tokenizer()), CHAT)


TIDY = ("clean_up_tokenization_spaces", "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output")
"""Settings by which a tokenizer takes spaces before punctuation away; Llama 3's has the first."""


@pytest.mark.parametrize("text", [" click [3] 'search'", " say hello !", " look , then go .", " a 's thing"])
def test_text_that_a_tokenizer_would_tidy_up_comes_back_as_it_was(tmp_path, text):
    byte_level_tokenizer().save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path, **dict.fromkeys(TIDY, True))
    format = PromptFormat(tokenizer)
    assert tokenizer.decode(format.text_ids(text)) != text
    assert format.decode(format.text_ids(text)) == text
    require_contract(format, PLAIN)


@pytest.mark.parametrize("recipe", [PLAIN, CHAT])
def test_a_tokenizer_that_changes_text_is_refused(recipe):
    tokenizer = chat_tokenizer()
    tokenizer.backend_tokenizer.normalizer = normalizers.Replace("carrot", "turnip")
    with pytest.raises(InputError, match="does not give a prediction back as it was written"):
        require_contract(PromptFormat(tokenizer), recipe)


def test_a_tokenizer_of_sentencepiece_is_refused():
    with pytest.raises(InputError, match="does not give a prediction back as it was written"):
        require_contract(PromptFormat(sentencepiece_tokenizer()), PLAIN)


def test_a_model_without_a_chat_template_is_refused():
    with pytest.raises(InputError, match="chat template"):
        require_contract(PromptFormat(byte_level_tokenizer()), CHAT)
