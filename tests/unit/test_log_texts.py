"""Texts of logs: what is replaced in them, and what the rules for rows refuse."""

import re

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.tables import LOG_SCHEMA_VERSION, MAX_TEXT_BYTES, without_template
from tasks.logs.clean_text import CLEANED, MARKED, clean
from tasks.logs.rules import reasons_against

PIECES = (
    "[end]",
    "<|im_start|>",
    "</s>",
    "[/INST]",
    "\x1b[31m",
    "\r\n",
    "\r",
    "\x00",
    "\x7f",
    "[",
    "]",
    "<",
    ">",
    "a",
    " ",
)
TEXTS = st.lists(st.sampled_from((*PIECES, "\n", "é", "\u2028", "end", "|")), max_size=6).map("".join)


@given(TEXTS | st.text(st.characters(codec=None)))
def test_a_cleaned_text_has_nothing_left_to_clean_and_a_clean_one_stays(text):
    cleaned, remarks = clean(text)
    assert clean(cleaned) == (cleaned, tuple({*remarks} - {CLEANED}))
    assert without_template(cleaned) == cleaned
    cleaned.encode()  # no half of a character is left
    unbroken = re.sub("[\ud800-\udfff]", "\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))
    assert (CLEANED in remarks) == (cleaned != unbroken)
    assert (MARKED in remarks) == ("\ufffd" in cleaned)


@given(TEXTS)
def test_a_text_is_cleaned_alike_whatever_stands_after_it(text):
    assert clean(f"{text} [")[0] == f"{clean(text)[0]} ["


@settings(deadline=None, max_examples=20)
@given(st.lists(TEXTS, min_size=1, max_size=20))
def test_actions_are_refused_where_they_hold_what_is_cleaned_or_nothing(texts):
    reasons = reasons_against(steps(texts))
    for place, text in enumerate(texts):
        assert (place in reasons) == (without_template(text) != text or not text.strip()), repr(text)


def test_a_text_is_as_long_as_its_bytes():
    at_the_limit = "é" * (MAX_TEXT_BYTES // 2)
    reasons = reasons_against(steps(["go", at_the_limit, f"{at_the_limit}!"]))
    assert reasons == {2: f"action longer than {MAX_TEXT_BYTES} bytes"}


def steps(actions: list[str]) -> pd.DataFrame:
    """Return an episode of one step for each action."""
    rows = [
        {
            **{"trajectory_id": f"one/{place}", "turn": 0, "task_id": "task", "instruction": "go", "family": "f"},
            **{"split": "train", "state": "- you: here", "action": action, "next_state": "- you: there"},
            **{"reward": 1.0, "done": True, "success": True, "truncated": False, "source": "a test", "thought": ""},
            **{"seed": 0, "schema_version": LOG_SCHEMA_VERSION},
        }
        for place, action in enumerate(actions)
    ]
    return pd.DataFrame(rows)
