import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.state_text import apply_changes, changes_between, lines_of, text_of

names = st.text(st.characters(categories=["Ll", "Lu", "Nd"]), min_size=1, max_size=8)
values = st.text(st.characters(categories=["Ll", "Nd"]), min_size=1, max_size=8) | st.sampled_from(["gone", "\\gone"])
states = st.dictionaries(names, values, max_size=8)


def test_only_lines_that_differ_are_written():
    before = "- you: kitchen\n- carrot: counter raw uncut\n- milk: fridge"
    after = "- you: kitchen\n- carrot: held raw uncut\n- meal: held raw"
    assert changes_between(before, after) == "- carrot: held raw uncut\n- meal: held raw\n- milk: gone"


@given(states, states)
def test_applying_the_changes_gives_the_next_state(before, after):
    reached = apply_changes(text_of(before), changes_between(text_of(before), text_of(after)))
    assert lines_of(reached) == after


def test_a_line_that_says_gone_is_not_removed():
    assert changes_between("- milk: fridge", "- milk: gone") == "- milk: \\gone"
    assert apply_changes("- milk: fridge", "- milk: \\gone") == "- milk: gone"
    assert apply_changes("- milk: gone\n- you: here", "- you: there") == "- milk: gone\n- you: there"


@given(states)
def test_nothing_changes_without_changes(state):
    text = text_of(state)
    assert changes_between(text, text) == ""
    assert apply_changes(text, "") == text


@pytest.mark.parametrize("text", ["carrot: held", "- carrot", "- : held", "- a: b\n- a: c"])
def test_what_is_no_state_is_refused(text):
    with pytest.raises(ValueError, match=r"line of a state|appears twice"):
        lines_of(text)
