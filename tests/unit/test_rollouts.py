"""Prompts of a policy while it plays, on the shipped backbone and real games."""

import pytest

from infra.environments.by_name import open_environment
from models.examples.supervised import policy_examples
from models.generation.torch_engine import TorchEngine, engine_weights
from models.network.language_model import load_model
from models.rollout.rollouts import Rollout, RolloutOptions
from models.text.renaming import EntityRenaming
from schemas.recipes.environments import CookingRecipe
from schemas.records import Failure
from schemas.sampling import Sampled
from tasks.backbones.find_backbone import SHIPPED
from tests.rollouts import Speaker, plain_policy, rollout_options


@pytest.fixture(scope="module")
def model():
    return load_model(SHIPPED / "textworld-tiny")


def play(model, num_tasks: int, options: RolloutOptions, renamings=None, **shown):
    environment = open_environment(CookingRecipe())
    tasks = environment.tasks("train", num_tasks)
    engine = TorchEngine(engine_weights(model.network), seed=0)
    rollout = Rollout(engine, plain_policy(model.format, **shown), environment, "real", options, renamings or {})
    return tasks, rollout.play(tasks)


@pytest.mark.parametrize("history_length", [0, 2])
def test_a_policy_is_cloned_from_what_it_will_see_when_it_plays(model, history_length):
    shown = {"remember_episode": False, "history_length": history_length}
    _, (episode,) = play(model, 1, rollout_options(max_steps=4), **shown)
    examples = policy_examples(plain_policy(model.format, **shown), episode)
    assert len(examples) == len(episode.turns) == len(episode.tokens)
    for example, stream in zip(examples, episode.tokens, strict=True):
        first_target, first_action = example.is_target.index(True), stream.is_action.index(True)
        assert example.ids[:first_target] == stream.ids[:first_action]


def test_a_policy_that_remembers_sees_one_stream(model):
    _, (episode,) = play(model, 1, rollout_options(max_steps=3), remember_episode=True)
    (stream,) = episode.tokens
    shown = [id for id, is_action in zip(stream.ids, stream.is_action, strict=True) if not is_action]
    expected = model.format.task(episode.task)
    for turn in episode.turns:
        expected += model.format.state(turn.state)
    assert shown == expected


def test_episodes_come_back_in_the_order_of_their_tasks_whatever_the_slots(model):
    tasks, episodes = play(model, 5, rollout_options(max_steps=3, num_slots=2), remember_episode=False)
    assert [episode.task.task_id for episode in episodes] == [task.task_id for task in tasks]
    assert all(episode.truncated or episode.turns[-1].step.done for episode in episodes)


@pytest.mark.parametrize("remember_episode", [True, False])
def test_under_aliases_only_the_policy_hears_other_names(model, remember_episode):
    environment = open_environment(CookingRecipe())
    (task,) = environment.tasks("train", 1)
    renamings = EntityRenaming({name: f"zan {i}" for i, name in enumerate(environment.names(task))})
    options, names = rollout_options(max_steps=4), {task.task_id: renamings}
    _, (episode,) = play(model, 1, options, names, remember_episode=remember_episode)
    seen = " ".join(model.format.decode(stream.ids) for stream in episode.tokens)
    assert "zan 0" in seen
    assert not any(name in seen for name in environment.names(task))
    assert all("zan" not in turn.state + turn.action + turn.step.state for turn in episode.turns)


def test_what_a_policy_says_under_an_alias_is_done_to_the_thing_itself(model):
    environment = open_environment(CookingRecipe())
    (task,) = environment.tasks("train", 1)
    environment.reset({0: task})
    action = environment.expert(0)
    renamings = EntityRenaming({name: f"zan {i}" for i, name in enumerate(environment.names(task))})
    said = renamings.to_renamed(action)
    assert said != action
    ids = model.format.action(said)
    engine = Speaker([Sampled(ids, [0.0] * len(ids), ended=True)])
    rollout = Rollout(
        engine, plain_policy(model.format), environment, "real", rollout_options(max_steps=1), {task.task_id: renamings}
    )
    (episode,) = rollout.play([task])
    (turn,) = episode.turns
    assert turn.action == action
    assert turn.step.state != turn.state


class Counted:
    """Environment that counts the actions that it is asked to take."""

    def __init__(self, environment):
        self.environment, self.num_actions = environment, 0
        self.reset = environment.reset

    def step(self, actions):
        self.num_actions += len(actions)
        return self.environment.step(actions)


@pytest.mark.parametrize("remember_episode", [True, False])
def test_an_episode_whose_stream_is_full_has_no_outcome_and_others_are_those_without_a_limit(model, remember_episode):
    environment, format = (
        open_environment(CookingRecipe()),
        plain_policy(model.format, remember_episode=remember_episode),
    )
    tasks, options = environment.tasks("train", 8), rollout_options(max_steps=6, temperature=0.0)
    weights = engine_weights(model.network)
    free = Rollout(TorchEngine(weights, 0), format, environment, "real", options).play(tasks)
    lengths = sorted(max(len(stream.ids) for stream in one.tokens) for one in free)
    limit = lengths[len(lengths) // 2] - 1
    counted = Counted(environment)
    rollout = Rollout(TorchEngine(weights, 0, max_tokens=limit), format, counted, "real", options)
    limited = rollout.play(tasks)
    assert lengths[0] <= limit < lengths[-1], "some fit, some do not"
    for ours, theirs in zip(free, limited, strict=True):
        if max(len(stream.ids) for stream in ours.tokens) <= limit:
            assert theirs == ours
        else:
            assert (theirs.failure, theirs.truncated, theirs.success) == (Failure.TOO_LONG, False, False)
            assert theirs.turns[:-1] == ours.turns[: len(theirs.turns) - 1]
            assert theirs.turns[-1].step.state == theirs.turns[-1].state
    failed = [one for one in limited if one.failure]
    assert counted.num_actions == sum(len(one.turns) for one in limited) - len(failed)
    assert rollout.limits[f"streams full after {options.max_episode_tokens} tokens"] == len(failed)
