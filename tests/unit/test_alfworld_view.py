"""State text of a room of ALFWorld, and what is remembered of it."""

import pytest

from infra.environments.alfworld.annotator import explain
from infra.environments.alfworld.listed import StateLists
from infra.environments.alfworld.memory import Memory
from infra.environments.alfworld.view import actions_in, near_misses_in, state_text
from schemas.records import AgentTask, Step, Turn
from schemas.state_text import lines_of

PLACES = ["desk 1", "drawer 2", "drawer 10", "safe 1"]
AT_THE_DRAWERS = (
    "go to safe 1",
    "go to desk 1",
    "take pen 2 from drawer 10",
    "open drawer 2",
    "look",
    "inventory",
    "help",
)
SAID = "You arrive at drawer 10. On the drawer 10, you see a pen 2."


KNOWN = {"desk 1": "unseen", "drawer 2": "unseen", "drawer 10": "pen 2", "safe 1": "closed"}


def heard(*said: str) -> dict[str, str]:
    """Return what is known of visited places, and of objects, after these observations."""
    memory = Memory(PLACES)
    for one in said:
        memory.hear(one)
    return {name: known for name, known in memory.lines.items() if known != "unseen"}


def test_a_state_says_what_was_seen_and_what_would_be_accepted():
    text = state_text(SAID, AT_THE_DRAWERS, "", KNOWN)
    assert text == (
        "- saw: You arrive at drawer 10. On the drawer 10, you see a pen 2.\n"
        "- at: drawer 2, drawer 10\n"
        "- holding: nothing\n"
        "- can: open drawer 2, take pen 2 from drawer 10\n"
        "- desk 1: unseen\n"
        "- drawer 2: unseen\n"
        "- drawer 10: pen 2\n"
        "- safe 1: closed"
    )
    assert set(actions_in(lines_of(text))) == set(AT_THE_DRAWERS) - {"look", "inventory", "help"}
    assert {"take pen 2 from safe 1", "heat pen 2 with microwave 1"} <= set(near_misses_in(lines_of(text)))


def test_a_state_accepts_what_it_lists_and_leaves_open_where_one_can_go():
    listed, text = StateLists(), state_text(SAID, AT_THE_DRAWERS, "", KNOWN)
    refused = ("take pen 1 from drawer 10", "open drawer 10", "go to bed 1", "drawer 2", "take  pen 2 from drawer 10")
    assert {listed.accepts(text, action) for action in refused} == {False}
    assert {listed.accepts(text, action) for action in AT_THE_DRAWERS if not action.startswith("go ")} == {True}
    assert {listed.accepts(text, f"go to {place}") for place in PLACES} == {None}
    assert listed.refused(text) == text.replace(SAID, "Nothing happens.")


def test_first_words_lose_their_banner_and_the_task():
    said = "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room.\n\nYour task is to: dance."
    lines = lines_of(state_text(said, [f"go to {place}" for place in PLACES], "", Memory(PLACES).lines))
    assert lines["saw"] == "You are in the middle of a room."
    assert (lines["at"], lines["can"]) == ("the middle of the room", "nothing")
    assert {place: lines[place] for place in PLACES} == dict.fromkeys(PLACES, "unseen")


def test_contents_are_remembered_as_they_change():
    arrived = "You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 2."
    assert heard(arrived) == {"desk 1": "mug 1, pen 2"}
    assert heard(arrived, "You pick up the mug 1 from the desk 1.") == {"desk 1": "pen 2"}
    assert heard(arrived, "You move the book 3 to the desk 1.") == {"desk 1": "mug 1, pen 2, book 3"}
    assert heard("You arrive at safe 1. On the safe 1, you see nothing.") == {"safe 1": "nothing"}


def test_what_is_inside_is_known_once_it_was_open():
    closed, opened = "The safe 1 is closed.", "You open the safe 1. The safe 1 is open. In it, you see a watch 1."
    assert heard(closed) == {"safe 1": "closed"}
    assert heard(closed, opened, "You close the safe 1.", closed) == {"safe 1": "watch 1"}
    taken = "You pick up the watch 1 from the safe 1."
    assert heard(closed, opened, taken, "You close the safe 1.", closed) == {"safe 1": "nothing"}


def test_of_what_is_beside_a_place_only_what_was_put_there_is_known():
    assert heard("You move the pen 2 to the drawer 2.") == {"drawer 2": "pen 2"}
    assert heard("You pick up the pen 2 from the drawer 2.") == {}


def test_the_last_of_hot_and_cold_counts_and_clean_stays():
    done = ["You clean the mug 1 using the sinkbasin 1.", "You heat the mug 1 using the microwave 1."]
    assert heard(*done) == {"mug 1": "is cleaned, heated"}
    assert heard(*done, "You cool the mug 1 using the fridge 1.") == {"mug 1": "is cleaned, cooled"}


@pytest.mark.parametrize(
    ("instruction", "action", "expected"),
    [
        (
            "put a clean mug in desk",
            "move mug 1 to desk 1",
            "at desk 1, asked. holding mug 1, asked. mug 1: is cleaned. desk 1: pen 2. accepted. "
            "mug asked. desk asked. is cleaned. works.",
        ),
        (
            "put a hot mug in bed",
            "move mug 1 to desk 1",
            "at desk 1, not asked. holding mug 1, asked. mug 1: is cleaned. desk 1: pen 2. accepted. "
            "mug asked. desk not asked. not yet heated. works.",
        ),
        (
            "find two pen and put them in desk",
            "move mug 1 to desk 1",
            "at desk 1, asked. holding mug 1, not asked. mug 1: is cleaned. desk 1: pen 2. accepted. "
            "mug not asked. desk asked. not yet two. works.",
        ),
        (
            "find two pen and put them in desk",
            "move pen 1 to desk 1",
            "at desk 1, asked. holding mug 1, not asked. desk 1: pen 2. not accepted here. works.",
        ),
        (
            "look at mug under the desklamp",
            "use desklamp 1",
            "at desk 1, not asked. holding mug 1, asked. accepted. mug asked. desklamp asked. works.",
        ),
        (
            "put a mug in desk",
            "take pen 2 from desk 1",
            "at desk 1, asked. holding mug 1, asked. desk 1: pen 2. not accepted here. works.",
        ),
        ("put a mug in desk", "look", "at desk 1, asked. holding mug 1, asked. accepted. works."),
    ],
)
def test_a_trace_puts_what_is_known_and_asked_before_its_verdict(instruction, action, expected):
    known = {"desk 1": "pen 2", "mug 1": "is cleaned"}
    state = state_text("Ah.", ["move mug 1 to desk 1", "use desklamp 1"], "mug 1", known)
    turn = Turn(state, action, Step("- saw: Well.", 0.0, done=False, success=False))
    assert explain(AgentTask("t", instruction, "train", "f"), turn) == expected


def test_a_trace_counts_to_two():
    state = state_text("Ah.", ["move pen 1 to desk 1"], "pen 1", {"desk 1": "mug 1, pen 2"})
    turn = Turn(state, "move pen 1 to desk 1", Step("- saw: Well.", 1.0, done=True, success=True))
    trace = explain(AgentTask("t", "put two pen in desk", "train", "f"), turn)
    assert trace.endswith("accepted. pen asked. desk asked. is two. wins.")


def test_a_trace_ends_with_what_came_of_it():
    state = state_text("Ah.", ["use desklamp 1"], "", {"desk 1": "nothing"})
    asked = AgentTask("t", "look at mug under the desklamp", "train", "f")
    for step, verdict in (
        (Step("- saw: Well.", 1.0, done=True, success=True), "wins."),
        (Step("- saw: Well.", 0.0, done=True, success=False), "loses."),
        (Step("- saw: Nothing happens.", 0.0, done=False, success=False), "refused."),
    ):
        assert explain(asked, Turn(state, "use desklamp 1", step)).endswith(f"desklamp asked. {verdict}")
