"""Entity renaming: the tasks that get new names, and that the same draw gives the same names."""

from dataclasses import replace

import pytest

from infra.environments.by_name import open_environment
from schemas.recipes.environments import CookingRecipe
from tasks.playing.entity_renaming import draw_entity_renamings

pytestmark = pytest.mark.integration
ENVIRONMENT = CookingRecipe()


@pytest.fixture(scope="module")
def tasks():
    return open_environment(ENVIRONMENT).tasks("train", 40)


def test_about_the_share_of_tasks_has_aliases_and_what_is_said_of_them_is_meant_of_the_things(policy, tasks):
    drawn = draw_entity_renamings(tasks, 0.5, policy, ENVIRONMENT, seed=0)
    assert 10 < len(drawn) < 30
    for task in tasks:
        if task.task_id in drawn:
            renamings = drawn[task.task_id]
            for text in (task.instruction, task.initial_state):
                assert renamings.to_original(renamings.to_renamed(text)) == text


def test_half_of_them_are_invented_and_half_are_names_of_other_things_in_other_roles(policy, tasks):
    drawn = draw_entity_renamings(tasks, 1.0, policy, ENVIRONMENT, seed=0)
    environment = open_environment(ENVIRONMENT)
    known = {name for task in tasks for name in environment.names(task)}
    called = [{drawn[task.task_id].to_renamed(name) for name in environment.names(task)} for task in tasks]
    num_borrowed = sum(names <= known for names in called)
    num_invented = sum(not names & known for names in called)
    assert num_borrowed + num_invented == len(tasks)
    assert 10 < num_borrowed < 30
    to_renamed = {drawn[task.task_id].to_renamed(task.instruction) for task in tasks}
    assert (
        len({one for one in to_renamed if any(name in one for name in known)} - {task.instruction for task in tasks})
        > 5
    )


def test_the_same_draw_gives_the_same_aliases_and_another_others(policy, tasks):
    def to_renamed(seed: int) -> list[str]:
        drawn = draw_entity_renamings(tasks, 1.0, policy, ENVIRONMENT, seed)
        return [drawn[task.task_id].to_renamed(task.instruction) for task in tasks]

    assert to_renamed(0) == to_renamed(0) != to_renamed(1)


def test_generated_tasks_keep_their_names_and_without_a_share_all_do(policy, tasks):
    generated = [replace(task, parent_id=task.task_id) for task in tasks]
    assert not draw_entity_renamings(generated, 1.0, policy, ENVIRONMENT, seed=0)
    assert not draw_entity_renamings(tasks, 0.0, policy, ENVIRONMENT, seed=0)
