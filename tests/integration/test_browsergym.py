"""Adapter to BrowserGym, on a stand-in of ours that speaks as it does; the real benchmarks need websites."""

from pathlib import Path

import pytest

from infra.environments.browsergym.view import is_action
from infra.environments.by_name import annotator_of_facts, open_environment
from models.rollout.behaviour_policies import collect
from schemas.errors import InputError
from schemas.recipes.environments import PluginRecipe
from schemas.records import Step, Trajectory, Turn

pytestmark = pytest.mark.integration

FIRST = {"train": 0, "valid": 2, "test": 4}
OPTIONS = {"id": "tests.integration.stand_in_browser:Shop{number}-v0", "first": FIRST}
SHOP = PluginRecipe(name="browsergym", families=("shop",), options=OPTIONS)


@pytest.fixture(scope="module")
def shop():
    environment = open_environment(SHOP)
    yield environment
    environment.close()  # type: ignore[attr-defined]


def test_tasks_are_numbers_and_pages_are_states(shop):
    tasks = shop.tasks("train", 2) + shop.tasks("test", 2)
    assert [task.instruction for task in tasks] == [f"Find lamp {n} and add it to the cart." for n in (0, 1, 4, 5)]
    assert shop.reset({0: tasks[0]})[0] == (
        "- page: http://shop/\n- [b1] paragraph: Lamps and more\n- [b2] textbox: Search, focused\n- [b3] button: Add to Cart"
    )


def test_calls_act_and_what_is_no_call_changes_nothing(shop):
    (task,) = shop.tasks("train", 1)
    before = shop.reset({0: task})[0]
    for nonsense in (
        "buy it",
        "click('z9')",
        "click(['b3'])",
        "click({[]: 1})",
        "fill('b2')",
        "__import__('os')",
        "click(b2)",
        "noop()\x00",
        9_000 * "(",
    ):
        assert shop.step({0: nonsense})[0] == Step(before, 0.0, done=False, success=False)
    assert "- error: Timeout" in shop.step({0: "hover('b3')"})[0].state
    filled = shop.step({0: "fill('b2', 'lamp 0')"})[0]
    assert "[b2] textbox: Search, value 'lamp 0', focused" in filled.state
    bought = shop.step({0: "click('b3')"})[0]
    assert (bought.done, bought.success, bought.reward) == (True, True, 1.0)
    trajectory = Trajectory(task, "real", [Turn(filled.state, "click('b3')", bought)])
    assert annotator_of_facts(SHOP).annotate([trajectory]) == [["[b3] button: Add to Cart. wins."]]


THIRTEEN = (
    *("noop(1000)", "send_msg_to_user('42')", "scroll(0, -200)", "fill('a', 'x')", "select_option('a', ['x', 'y'])"),
    *(
        "click('a', 'right', ['Shift'])",
        "click('a', button='middle')",
        "dblclick('a')",
        "hover('a')",
        "press('a', 'Enter')",
    ),
    *("focus('a')", "clear('a')", "drag_and_drop('a', 'b')", "upload_file('a', '/files/cv.pdf')"),
)
"""The paper's calls, with click in two forms."""


def test_the_papers_thirteen_calls_are_known():
    tree = {"nodes": [{"browsergym_id": "a"}, {"browsergym_id": "b"}]}
    assert [call for call in THIRTEEN if not is_action(call, tree, Path("/files"))] == []
    assert len({call.partition("(")[0] for call in THIRTEEN}) == 13
    for nonsense in ("drag_and_drop('a', 'z')", "click('a', **{'x': 1})", "clear()", "focus('a', 'b')"):
        assert not is_action(nonsense, tree, Path("/files"))


def test_a_policy_uploads_nothing_but_what_it_was_given():
    tree = {"nodes": [{"browsergym_id": "a"}]}
    for outside in ("/etc/passwd", "/files/../etc/passwd", "cv.pdf", "/files/\0"):
        assert not is_action(f"upload_file('a', {outside!r})", tree, Path("/files"))
    assert not is_action("upload_file('a', '/files/cv.pdf')", tree)


def test_no_task_is_of_two_splits(shop):
    with pytest.raises(InputError, match="train task 2 would be number 2, which is one of valid: lower"):
        shop.tasks("train", 3)
    all_at_0 = {**OPTIONS, "first": dict.fromkeys(("train", "valid", "test"), 0)}
    same = open_environment(PluginRecipe(name="browsergym", families=("shop",), options=all_at_0))
    with pytest.raises(InputError, match="test task 0 would be number 0, which is one of train: lower"):
        same.tasks("test", 1)


def test_it_has_no_expert_and_says_which_options_it_needs(shop):
    with pytest.raises(InputError, match=r"no expert to fill the logs: set ingest\.path"):
        collect(shop, shop.tasks("train", 1), [0.0], 0, 3)
    with pytest.raises(InputError, match=r"needs environment\.options\.first and id"):
        open_environment(PluginRecipe(name="browsergym"))
    with pytest.raises(InputError, match="does not say where test and valid tasks begin"):
        open_environment(PluginRecipe(name="browsergym", options={**OPTIONS, "first": {"train": 0}}))
