"""The task generator learns from its tasks that were worth something, and from no others."""

from dataclasses import replace

import pytest
import torch

from infra.environments.by_name import open_environment
from models.examples.supervised import variation_example
from models.experience.plain_experience import PlainExperience
from models.training.sft import sft_loss
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask, Step, Trajectory, Turn
from tasks.learning.train_generator import train_generator
from tasks.running.artifacts import get_frozen_model, put_tasks, put_trajectories

pytestmark = pytest.mark.integration
RECIPE = Recipe(name="generator", curriculum={"generator": {"name": "spice", "learning_rate": 1e-3}})


@pytest.fixture
def parent() -> AgentTask:
    real = open_environment(RECIPE.environment)
    (task,) = real.tasks("train", 1)
    return replace(task, initial_state=real.reset({0: task})[0])


def trained(policy, parent, varied, outcomes):
    turns = [[Turn(varied.initial_state, "eat meal", Step("end", float(won), True, won))] for won in outcomes]
    groups = put_trajectories([Trajectory(varied, "dream", one, group_id="g") for one in turns])
    asked = (put_tasks([parent, varied]), [groups], RECIPE.curriculum, RECIPE.experience, RECIPE.training, 0)
    return train_generator.__wrapped__(policy, *asked)


def loss(model, parent, varied) -> float:
    found = get_frozen_model(model)
    example = variation_example(
        PlainExperience(found.format), parent, parent.initial_state, varied, varied.initial_state
    )
    with torch.no_grad():
        return sft_loss(found.network, [example], torch.float32).item()


def test_a_task_at_the_edge_becomes_likelier_and_one_that_all_win_teaches_nothing(policy, parent):
    state = parent.initial_state.replace("raw", "fried")
    varied = replace(parent, task_id="v", initial_state=state, parent_id=parent.task_id)
    assert trained(policy, parent, varied, [True, True]) == policy
    better = trained(policy, parent, varied, [True, False])
    assert (better.notes["num_tasks"], better.notes["num_examples"]) == (1, 4)
    assert loss(better, parent, varied) < loss(policy, parent, varied)
