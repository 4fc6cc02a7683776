"""State text of ScienceWorld, what is remembered of a game, and its traces, by hand; no Java."""

import pytest

from infra.environments.scienceworld.annotator import explain
from infra.environments.scienceworld.memory import Memory
from infra.environments.scienceworld.named import things_about
from infra.environments.scienceworld.plan import Plan, about_others
from infra.environments.scienceworld.view import plainly, state_text
from schemas.records import AgentTask, Step, Turn
from schemas.state_text import changes_between, lines_of, text_of

KITCHEN = """This room is called the kitchen. In it, you see:
\ta table. On the table is: a glass cup (containing nothing).
\tthe agent
\ta substance called air
\ta cupboard. The cupboard door is closed.
\ta red box (containing nothing)
You also see:
\tA door to the outside (that is closed)
\tA door to the hallway (that is open)
"""
OUTSIDE = """This outside location is called the outside. Here you see:
\ta dove egg
\tan axe
You also see:
\tA door to the kitchen (that is open)
"""
HOLDING_AN_EGG = "In your inventory, you see:\n\tan orange\n\ta dove egg\n"
TASK = AgentTask(
    "find-animal/train/0",
    "Your task is to find a(n) animal. First, focus on the thing. Then, move it to the red box in the kitchen.",
    "train",
    "find-animal",
    0,
)


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("a substance called water", "water"),
        ("a sink, which is turned off. In the sink is: nothing.", "sink off"),
        ("a oven, which is turned off. The oven door is closed. ", "oven off closed"),
        ("a bed. On the bed is: a mattress. On the mattress is: a white pillow..", "bed (mattress (white pillow))"),
        (
            "a flower pot 4 (containing a pea plant in the adult stage. On the pea plant you see: a flower. , soil)",
            "flower pot 4 (pea plant in the adult stage (flower), soil)",
        ),
        ("a blue box (containing a flower pot 1 (containing nothing))", "blue box (flower pot 1)"),
        (
            "a thermometer, currently reading a temperature of 10 degrees celsius",
            "thermometer, currently reading temperature of 10 degrees celsius",
        ),
    ],
)
def test_a_thing_is_said_in_fewer_words(said, plain):
    assert plainly(said) == plain


def test_a_state_keeps_what_was_focused_on_and_every_room_that_was_seen():
    memory = Memory()
    memory.learn("", OUTSIDE)
    memory.learn("You focus on the dove egg.", OUTSIDE)
    memory.learn("You move to the kitchen.", KITCHEN)
    state = state_text("You move to the kitchen.", KITCHEN, HOLDING_AN_EGG, memory.lines)
    assert lines_of(state) == {
        "said": "You move to the kitchen.",
        "room": "kitchen",
        "have": "dove egg; orange",
        "focus": "dove egg",
        "outside": "axe; dove egg; door to kitchen",
        "kitchen": "cupboard closed; red box; table (glass cup); door to hallway; door to outside closed",
    }


def test_a_reset_task_has_no_focus_any_more():
    memory = Memory()
    for said in ("You focus on the dove egg.", "You reset the goal progress and focus."):
        memory.learn(said, OUTSIDE)
    assert memory.lines["focus"] == "nothing"


def test_to_come_back_to_a_room_changes_nothing_that_is_known_of_it():
    memory = Memory()
    memory.learn("", OUTSIDE)
    memory.learn("", KITCHEN)
    inside = state_text("You move to the kitchen.", KITCHEN, HOLDING_AN_EGG, memory.lines)
    memory.learn("", OUTSIDE)
    outside = state_text("You move to the outside.", OUTSIDE, HOLDING_AN_EGG, memory.lines)
    assert set(lines_of(changes_between(inside, outside))) == {"said", "room"}


def test_what_an_action_names_is_there_or_is_not():
    lines = {
        "room": "greenhouse",
        "have": "orange; dove egg",
        "greenhouse": "flower pot 3 (pea plant, soil); flower pot 6 (water); red box; door to hallway; door to outside closed",
        "kitchen": "blue box",
    }
    assert list(things_about("move dove egg to red box", lines)) == ["dove egg", "red box"]
    assert list(things_about("pick up flower pot 3", lines)) == ["flower pot 3 (pea plant, soil)"]
    assert list(things_about("pick up flower pot 4", lines)) == ["no flower pot 4"]
    assert list(things_about("open door to outside", lines)) == ["door to outside closed"]
    assert list(things_about("move egg dove egg in inventory to blue box", lines)) == ["dove egg", "no blue box"]
    assert list(things_about("look around", lines)) == []


def _trace(action: str, state: str, outcome: str = "continue") -> str:
    step = Step(state, float(outcome == "success"), done=outcome != "continue", success=outcome == "success")
    return explain(TASK, Turn(state, action, step))


def test_a_trace_says_what_decides():
    memory = Memory()
    memory.learn("", OUTSIDE)
    state = state_text("", OUTSIDE, HOLDING_AN_EGG, memory.lines)
    assert _trace("go to kitchen", state) == "in outside. door to kitchen. kitchen new. works."
    assert _trace("teleport to foundry", state) == "in outside. foundry new. works."
    assert (
        _trace("focus on axe", state, "failure") == "in outside. axe. asked: Your task is to find a(n) animal. loses."
    )
    assert (
        _trace("move axe to red box", state)
        == "in outside. axe. no red box. focus nothing, not moved. red box, asked. works."
    )
    memory.learn("", KITCHEN)
    assert "kitchen known" in _trace("go to kitchen", state_text("", OUTSIDE, HOLDING_AN_EGG, memory.lines))


def test_a_trace_says_whether_what_is_moved_is_what_was_focused_on():
    lines = {
        "room": "kitchen",
        "have": "flower pot 3 (pea plant, soil)",
        "focus": "pea plant",
        "kitchen": "blue box; red box",
    }
    state = text_of(lines)
    assert _trace("move flower pot 3 to red box", state, "success") == (
        "in kitchen. flower pot 3 (pea plant, soil). red box. focus pea plant, moved. red box, asked. wins."
    )
    assert "focus pea plant, moved. blue box, not asked." in _trace("move flower pot 3 to blue box", state)
    assert "focus pea plant, not moved. red box, asked." in _trace("move blue box to red box", state)


SOLUTION = [
    "look around",
    "focus on dove",
    "pick up dove",
    "open door to kitchen",
    "go to kitchen",
    "move egg dove egg in inventory to red box",
]


def test_a_plan_is_followed_and_opens_only_doors_that_are_closed():
    plan = Plan(SOLUTION, "outside", teleports=True)
    for action in ("focus on dove", "pick up dove"):
        assert plan.next("outside", OUTSIDE) == action
        plan.take(action, "outside")
    assert plan.next("outside", OUTSIDE) == "go to kitchen"
    assert plan.next("outside", OUTSIDE.replace("is open", "is closed")) == "open door to kitchen"
    assert plan.next("kitchen", KITCHEN) == "move dove egg to red box"
    plan.take("move dove egg to red box", "kitchen")
    assert plan.next("kitchen", KITCHEN) == "wait1"


def test_a_plan_that_waits_leaves_nothing_out():
    growing = ["look around", "open door to kitchen", "go to kitchen", "wait1", "focus on adult turtle"]
    assert Plan(growing, "outside", teleports=True).actions == tuple(growing)


def test_a_plan_finds_back_from_where_it_was_not_meant_to_be():
    plan = Plan(SOLUTION, "outside", teleports=True)
    assert plan.next("foundry", "") == "teleport to outside"
    assert Plan(SOLUTION, "outside", teleports=False).next("foundry", "") == "focus on dove"


def test_who_forgets_a_step_goes_on_without_it():
    plan = Plan(SOLUTION, "outside", teleports=True)
    plan.take("move dove egg to red box", "outside")
    assert plan.next("outside", OUTSIDE) == "focus on dove"
    plan.take("pick up dove", "outside")
    assert plan.next("outside", OUTSIDE) == "go to kitchen"


def test_what_lies_around_too_is_named_at_length():
    plan = Plan(SOLUTION[-1:], "kitchen", teleports=True)
    assert plan.next("kitchen", KITCHEN + "\ta dove egg\n") == "move egg dove egg in inventory to red box"


def test_a_slip_is_the_same_with_another_thing():
    assert about_others("move dove egg to red box", ["axe"]) == ["move axe to red box"]
    assert about_others("pick up flower pot 3", ["flower pot 4"]) == ["pick up flower pot 4"]
    assert about_others("go to kitchen", ["axe"]) == []
