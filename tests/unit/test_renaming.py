"""Renaming: names change everywhere at once, and nothing else does."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.prompts import Situation
from models.renaming import RenamedEnvironment, invented_names, renamed, renamed_situation, renamer
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn

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


@given(st.integers(0, 10_000))
def test_invented_names_differ_from_each_other_and_from_words_in_use(seed):
    names = [f"thing {i}" for i in range(5)]
    invented = invented_names(names, random.Random(seed), avoid="kitchen counter stove")
    assert list(invented) == names
    assert len(set(invented.values())) == 5
    assert not set(invented.values()) & {"kitchen", "counter", "stove"}


def test_renaming_there_and_back_leaves_an_episode_as_it_was():
    step = Step("- red apple: held raw uncut", 0.0, done=False, success=False, reasoning="red apple: counter. works.")
    episode = Trajectory(TASK, "real", [Turn("- red apple: counter raw uncut", "take red apple from counter", step)])
    there, back = renamer({"red apple": "bok"}), renamer({"bok": "red apple"})
    new = renamed(episode, there)
    assert "apple" not in repr(new)
    assert renamed(new, back) == episode


def test_a_situation_is_renamed_with_what_it_retrieved():
    situation = Situation(TASK, "- red apple: held", "eat red apple", ("take red apple",), (" take red apple =>\n",))
    assert "apple" not in repr(renamed_situation(situation, renamer({"red apple": "bok"})))


class Larder:
    """Knows apples only."""

    def reset(self, tasks):
        assert all("apple" in task.instruction for task in tasks.values())
        return {slot: task.initial_state for slot, task in tasks.items()}

    def step(self, actions):
        held = {slot: action == "take red apple" for slot, action in actions.items()}
        return {slot: Step("- red apple: held" if h else "nothing", float(h), h, h) for slot, h in held.items()}


def test_an_environment_under_other_names_hears_and_tells_its_own():
    other = AgentTask("other", "recipe: red apple fried diced", "train", "f", initial_state="- red apple: tree")
    environment = RenamedEnvironment(Larder(), {"t": {"red apple": "bok"}})
    tasks = {0: environment.seen(TASK), 1: environment.seen(other)}
    assert "apple" not in repr(tasks[0])
    assert tasks[1] == other
    assert environment.reset(tasks) == {0: "- bok: counter raw uncut", 1: "- red apple: tree"}
    steps = environment.step({0: "take bok", 1: "take red apple"})
    assert (steps[0].state, steps[1].state) == ("- bok: held", "- red apple: held")
    assert not environment.step({0: "take red apple"})[0].done, "an old name, known by heart, names nothing"
    episode = Trajectory(tasks[0], "dream", [Turn("- bok: counter raw uncut", "take bok", steps[0])])
    there = environment.as_it_was(episode)
    assert there.task == TASK
    assert there.turns[0].action == "take red apple"
    assert there.turns[0].step.state == "- red apple: held"


def test_a_state_whose_names_cannot_be_told_apart_breaks_the_episode():
    class Muddle(Larder):
        def step(self, actions):
            return dict.fromkeys(actions, Step("- red apple box: held", 1.0, done=True, success=True))

    environment = RenamedEnvironment(Muddle(), {"t": {"red apple": "bok", "pear": "bok box"}})
    environment.reset({0: environment.seen(TASK)})
    step = environment.step({0: "look"})[0]
    assert step.failure is Failure.NAMES
    assert (step.reward, step.success, step.state) == (0.0, False, "- bok: counter raw uncut")
