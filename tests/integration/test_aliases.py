"""Aliases: whose tasks get them, and that the same draw gives the same."""

from dataclasses import replace

import pytest

from infra.environments.by_name import open_environment
from schemas.environments import CookingRecipe
from tasks.aliases import draw_aliases

pytestmark = pytest.mark.integration
ENVIRONMENT = CookingRecipe()


@pytest.fixture(scope="module")
def tasks():
    return open_environment(ENVIRONMENT).tasks("train", 40)


def test_all_foods_of_about_the_share_of_tasks_are_called_otherwise(policy, tasks):
    drawn = draw_aliases(tasks, 0.5, policy, ENVIRONMENT, seed=0)
    assert 10 < len(drawn) < 30
    environment = open_environment(ENVIRONMENT)
    for task in tasks:
        if task.task_id in drawn:
            aliases, names = drawn[task.task_id], environment.names(task)
            shown = aliases.shown(task.instruction)
            assert not any(name in shown for name in names)
            assert aliases.meant(shown) == task.instruction


def test_the_same_draw_gives_the_same_aliases_and_another_others(policy, tasks):
    def shown(seed: int) -> list[str]:
        drawn = draw_aliases(tasks, 1.0, policy, ENVIRONMENT, seed)
        return [drawn[task.task_id].shown(task.instruction) for task in tasks]

    assert shown(0) == shown(0) != shown(1)


def test_generated_tasks_keep_their_names_and_without_a_share_all_do(policy, tasks):
    generated = [replace(task, parent_id=task.task_id) for task in tasks]
    assert not draw_aliases(generated, 1.0, policy, ENVIRONMENT, seed=0)
    assert not draw_aliases(tasks, 0.0, policy, ENVIRONMENT, seed=0)
