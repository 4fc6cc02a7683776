"""What a policy is shown while it plays, on the shipped backbone and real games."""

import pytest

from infra.environments.by_name import open_environment
from models.backbone import load_model
from models.engine import TorchEngine, engine_weights
from models.examples import policy_examples
from models.rollouts import Rollout, RolloutOptions
from schemas.environments import CookingRecipe
from tasks.backbone import SHIPPED


@pytest.fixture(scope="module")
def model():
    return load_model(SHIPPED / "textworld-tiny")


def play(model, num_tasks: int, options: RolloutOptions):
    environment = open_environment(CookingRecipe())
    tasks = environment.tasks("train", num_tasks)
    engine = TorchEngine(engine_weights(model.network), seed=0)
    rollout = Rollout(engine, model.format, environment, "real", options)
    return tasks, rollout.play(tasks)


@pytest.mark.parametrize("history_length", [0, 2])
def test_a_policy_is_cloned_from_what_it_will_see_when_it_plays(model, history_length):
    options = RolloutOptions(remember_episode=False, history_length=history_length, max_steps=4)
    _, (episode,) = play(model, 1, options)
    examples = policy_examples(model.format, episode, history_length, remember_episode=False)
    assert len(examples) == len(episode.turns) == len(episode.tokens)
    for example, stream in zip(examples, episode.tokens, strict=True):
        first_target, first_action = example.is_target.index(True), stream.is_action.index(True)
        assert example.ids[:first_target] == stream.ids[:first_action]


def test_a_policy_that_remembers_sees_one_stream(model):
    _, (episode,) = play(model, 1, RolloutOptions(remember_episode=True, max_steps=3))
    (stream,) = episode.tokens
    shown = [id for id, is_action in zip(stream.ids, stream.is_action, strict=True) if not is_action]
    expected = model.format.task(episode.task)
    for turn in episode.turns:
        expected += model.format.state(turn.state)
    assert shown == expected


def test_episodes_come_back_in_the_order_of_their_tasks_whatever_the_slots(model):
    tasks, episodes = play(model, 5, RolloutOptions(remember_episode=False, max_steps=3, num_slots=2))
    assert [episode.task.task_id for episode in episodes] == [task.task_id for task in tasks]
    assert all(episode.truncated or episode.turns[-1].step.done for episode in episodes)
