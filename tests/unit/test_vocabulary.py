"""Tokenizer of the logs' own words: what is often named is one token, and nothing is lost."""

from hypothesis import given
from hypothesis import strategies as st

from models.network.tokenizer import train_tokenizer
from models.text.prompts import PromptFormat

FORMAT = PromptFormat(train_tokenizer([" take creditcard 1 from sidetable 12\n- sidetable 12: creditcard 2"] * 10, 512))


def test_a_word_is_one_token_with_the_space_before_it_and_so_is_a_digit():
    pieces = [FORMAT.decode([one]) for one in FORMAT.ids(" take creditcard 1 from sidetable 12")]
    assert pieces == [" take", " creditcard", " 1", " from", " sidetable", " 1", "2"]


@given(st.text())
def test_every_text_can_be_read_back(text):
    assert FORMAT.decode(FORMAT.ids(text)) == text
