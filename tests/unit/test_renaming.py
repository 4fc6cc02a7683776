"""Renaming: names change everywhere at once, and nothing else does."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.text.prompts import TransitionQuery
from models.text.renaming import EntityRenaming, invented_names, renamed, renamed_situation, renamer
from schemas.records import AgentTask, Step, Trajectory, Turn

TASK = AgentTask("t", "recipe: red apple fried diced", "train", "f", initial_state="- red apple: counter raw uncut")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("take red apple from counter", "take bok from counter"),
        ("apple pie", "zan pie"),
        ("pineapple", "pineapple"),
        ("red apples", "red apples"),
        ("- apple: held\n- red apple: counter", "- zan: held\n- bok: counter"),
    ],
)
def test_whole_names_are_replaced_longest_first(text, expected):
    assert renamer({"apple": "zan", "red apple": "bok"})(text) == expected


def test_names_that_swap_are_replaced_at_once():
    assert renamer({"a": "b", "b": "a"})("a b") == "b a"


def test_a_name_may_begin_or_end_with_what_is_no_letter():
    assert renamer({"et.": "zan", "#1": "bok"})("click et., not set. or #1") == "click zan, not set. or bok"


@given(st.integers(0, 10_000))
def test_invented_names_differ_from_each_other_and_from_words_in_use(seed):
    names = [f"thing {i}" for i in range(5)]
    invented = invented_names(names, random.Random(seed), avoid="kitchen counter stove")
    assert list(invented) == names
    assert len(set(invented.values())) == 5
    assert not set(invented.values()) & {"kitchen", "counter", "stove"}


def test_some_invented_names_have_words_in_common_as_real_ones_do():
    invented = invented_names([f"thing {i}" for i in range(200)], random.Random(0)).values()
    words = [word for name in invented for word in name.split()]
    assert 0.2 < 1 - len(set(words)) / len(words) < 0.6


@given(st.integers(0, 10_000))
def test_invented_names_are_spelt_as_those_they_stand_for(seed):
    invented = invented_names(["h4aFWy", "Sint Maarten", "ONE", "red apple"], random.Random(seed))
    assert re.fullmatch(r"[a-z]\d[a-z][A-Z]{2}[a-z]", invented["h4aFWy"])
    assert invented["Sint Maarten"].istitle()
    assert invented["ONE"].isupper()
    assert invented["red apple"].islower()


def test_numbers_that_are_all_in_use_are_replaced_too():
    names = [f"{number:03}" for number in range(1000)]
    invented = invented_names(names, random.Random(0), avoid=" ".join(names))
    assert len(set(invented.values()) - set(names)) == 1000


def test_renaming_there_and_back_leaves_an_episode_as_it_was():
    step = Step("- red apple: held raw uncut", 0.0, done=False, success=False, reasoning="red apple: counter. works.")
    episode = Trajectory(TASK, "real", [Turn("- red apple: counter raw uncut", "take red apple from counter", step)])
    there, back = renamer({"red apple": "bok"}), renamer({"bok": "red apple"})
    new = renamed(episode, there)
    assert "apple" not in repr(new)
    assert renamed(new, back) == episode


def test_a_situation_is_renamed_with_what_it_retrieved():
    situation = TransitionQuery(
        TASK, "- red apple: held", "eat red apple", ("take red apple",), (" take red apple =>\n",)
    )
    assert "apple" not in repr(renamed_situation(situation, renamer({"red apple": "bok"})))


def test_what_is_said_of_an_alias_is_meant_of_the_thing():
    renamings = EntityRenaming({"red apple": "bok"})
    assert renamings.to_renamed("recipe: red apple fried") == "recipe: bok fried"
    assert renamings.to_original("cook bok with stove") == "cook red apple with stove"
    assert renamings.to_original("cook bokk with stove") == "cook bokk with stove"
