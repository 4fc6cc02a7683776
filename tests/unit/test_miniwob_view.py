"""State text of a page of MiniWoB++, and what is taken for an action on it."""

import re
from dataclasses import replace

import pytest

from infra.environments.miniwob.annotator import explain
from infra.environments.miniwob.listed import StateLists
from infra.environments.miniwob.view import Action, action_of, clicks, elements_of, state_text
from schemas.records import AgentTask, Step, Turn
from schemas.state_text import lines_of

WORKS = Step('- [1] text: "other"', 0.0, done=False, success=False)


def node(tag: str, ref: int, *children: dict, **more) -> dict:
    return {"tag": tag, "ref": ref, "children": list(children), **more}


FORM = node(
    "BODY",
    1,
    node("LABEL", 2, text="Username"),
    node("INPUT_text", 3, value="keneth ", focused=True, text=""),
    node(
        "LABEL",
        4,
        node("INPUT_checkbox", 5, value=True, text=""),
        {"tag": "t", "ref": -1, "children": [], "text": " me "},
    ),
    node("SELECT", 6, value="Chad", options=["Chad", "Cuba"]),
    node("P", 7, {"tag": "t", "ref": -2, "children": [], "text": "see"}, node("SPAN", 8, classes="alink", text="here")),
    node("BUTTON", 9, node("SPAN", 10, text=""), classes="ui-button ui-close"),
    node("DIV", 11, node("DIV", 12, text="a menu is open"), classes="ui-helper-hidden-accessible"),
    node("SPAN", 13, text=""),
)


def test_a_page_is_a_line_for_all_that_can_be_read_or_acted_on():
    assert state_text(list(elements_of(FORM))) == (
        '- [2] label: "Username"\n'
        '- [3] textbox: "keneth", focused\n'
        '- [5] checkbox: "me", checked\n'
        '- [6] combobox: "Chad" of "Chad" | "Cuba"\n'
        '- [7] text: "see"\n'
        '- [8] link: "here"\n'
        '- [9] button: "ui-close"'
    )


def test_an_empty_page_is_a_state_too():
    assert lines_of(state_text([])) == {"[0] text": "nothing"}


def test_only_what_can_be_done_on_the_page_is_an_action():
    page = list(elements_of(FORM))
    assert action_of("click [9]", page) == Action("click", 9)
    assert action_of('type [3] "a b"', page) == Action("type", 3, "a b")
    assert action_of('select [6] "Cuba"', page) == Action("select", 6, "Cuba")
    assert action_of("press enter", page) == Action("press", text="enter")
    impossible = ("", "click", "click [10]", "click [9] now", "press F5", 'select [6] "Peru"')
    untyped = ('type [9] "a"', "type [3] ", "type [3] a", 'type [3] ""')
    garbled = (
        'type [3] "a\x00b"',
        'type [3] "\x1b[2J"',
        f'type [3] "{100_000 * "x"}"',
        "click [9]\nclick [9]",
        "click [٩]x",
        f"click [{100_000 * '9'}]",
    )
    refused = (*impossible, *untyped, *garbled)
    assert [text for text in refused if action_of(text, page)] == []
    state = f"{state_text(page)}\n- dreamt: nonsense"
    assert {StateLists().accepts(state, text) for text in refused} == {False}
    possible = ("click [9]", 'type [3] "a b"', 'select [6] "Cuba"', "press enter")
    assert {StateLists().accepts(state, text) for text in possible} == {None}


def test_clicks_are_all_that_is_there_and_all_that_is_not_chosen_yet():
    possible = clicks(list(elements_of(FORM)))
    assert possible == [*(f"click [{ref}]" for ref in (2, 3, 5, 6, 7, 8, 9)), 'select [6] "Cuba"']


_FILLED_IN = (
    '[3] textbox: "keneth", not asked. [5] checkbox: "me", not asked, checked. [6] combobox: "Chad", not asked. '
)


@pytest.mark.parametrize(
    ("action", "instruction", "expected"),
    [
        ("click [8]", 'Click on the link "here".', f'[8] link: "here", asked. {_FILLED_IN}'),
        ("click [8]", 'Click on the link "there".', f'[8] link: "here", not asked. {_FILLED_IN}'),
        ('type [3] "ann"', "Enter ann", '[3] textbox: "keneth", not asked. "ann", asked. '),
        ("type [3]", "Enter ann", '[3] textbox: "keneth", not asked. '),
        (
            'select [6] "Cuba"',
            "Select Chad from the list.",
            '[6] combobox: "Chad", asked. "Cuba", not asked. ',
        ),
        ("click [5]", "Select me and click Submit.", '[5] checkbox: "me", asked, checked. '),
        ("press tab", "Enter keneth", '[3] textbox: "keneth", asked. '),
        ("click [99]", "Enter keneth", "no such thing here. "),
        (
            "click [9]",
            "Type Keneth, choose Cuba, untick you.",
            '[9] button: "ui-close", not asked. [3] textbox: "keneth", asked. [5] checkbox: "me", not asked, checked. '
            '[6] combobox: "Chad", not asked. ',
        ),
    ],
)
def test_a_trace_says_what_of_the_page_is_asked_for(action, instruction, expected):
    assert explained(action, instruction, state_text(list(elements_of(FORM)))) == f"{expected}works."


@pytest.mark.parametrize(
    ("action", "instruction", "page", "expected"),
    [
        ("click [8]", "Click on Tab #1.", '- [6] link: "Tab #1"\n- [8] link: "Tab #2"', "[8] {Tab #2}. [6] {Tab #1}+."),
        ("click [4]", "Press OK", '- [3] text: "OK"\n- [4] button: "OK"\n- [5] button: "No"', "[4] {OK}+. [5] {No}."),
        (
            "click [7]",
            'Press the button labeled "x".',
            '- [7] button: "Close"\n- [8] button: "OK"',
            "[7] {Close}+. [8] {OK}.",
        ),
    ],
)
def test_a_trace_says_it_of_the_other_links_or_buttons_too(action, instruction, page, expected):
    trace = explained(action, instruction, page)
    short = re.sub(r'(?:link|button): "([^,]+)", (not )?asked', lambda m: f"{{{m[1]}}}{'' if m[2] else '+'}", trace)
    assert short == f"{expected} works."


def test_a_trace_counts_what_is_asked_for_by_its_place():
    page = '- [4] textbox: (empty)\n- [5] label: "me"\n- [6] textbox: (empty)'
    asked = "Focus into the 2nd input textbox."
    assert explained("click [4]", asked, page) == "[4] textbox: (empty), 1st, not asked. works."
    assert explained("click [6]", asked, page) == "[6] textbox: (empty), 2nd, asked. works."
    assert explained("click [6]", "Focus into the textbox.", page) == "[6] textbox: (empty). works."


def test_only_a_choice_is_one_of_several():
    trace = explained("click [4]", 'Click on the "Terms" button.', '- [4] button: "Terms of use"')
    assert trace == '[4] button: "Terms of use", not asked. works.'


LOGIN = '- [5] textbox: "ann"\n- [6] textbox: (empty)\n- [7] checkbox: "me", checked\n- [8] checkbox: "you", unchecked\n- [9] button: "OK"'


@pytest.mark.parametrize(
    ("action", "instruction", "wrong"),
    [
        ("click [9]", "Enter ann, tick me, press OK.", ["[6]"]),
        ("click [9]", "Enter bea, tick you, press OK.", ["[5]", "[6]", "[7]", "[8]"]),
        ("click [9]", "Enter ann, press no button.", ["[9]"]),
        ("click [6]", "Focus into the 2nd textbox.", []),
        ("click [6]", "Focus into the 1st textbox.", ["[6]"]),
    ],
)
def test_a_trace_of_a_lost_task_says_what_was_wrong(action, instruction, wrong):
    lost = Step('- [1] text: "other"', 0.0, done=True, success=False)
    said = explained(action, instruction, LOGIN, lost)
    assert re.findall(r"(\[\d\]) [^.]*, wrong", said) == wrong
    assert said.endswith(" loses.")
    assert "wrong" not in explained(action, instruction, LOGIN, replace(lost, reward=1.0, success=True))


def explained(action: str, instruction: str, page: str, step: Step = WORKS) -> str:
    turn = Turn(page, action, step)
    return explain(AgentTask("t", instruction, "train", "f"), turn)
