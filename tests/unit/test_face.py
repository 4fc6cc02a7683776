"""The public face: importing it is quick and changes nothing; its parts, without a run."""

import json
import subprocess
import sys

import pytest

from infra.environments.by_name import open_environment
from infra.serving.single_player import SinglePlayerEnvironment
from models.generation.torch_engine import TorchEngine, engine_weights
from models.network.language_model import load_model
from models.rollout.agent import Agent
from models.rollout.rollouts import Rollout
from schemas.errors import InputError
from schemas.recipes.environments import CookingRecipe, PluginRecipe
from tasks.backbones.find_backbone import SHIPPED
from tests.rollouts import plain_policy, rollout_options

_IMPORTED = """
import json, os, signal, sys
before = dict(os.environ), signal.getsignal(signal.SIGINT)
import dreamgym
same = before == (dict(os.environ), signal.getsignal(signal.SIGINT))
print(json.dumps({"same": same, "modules": sorted({name.partition(".")[0] for name in sys.modules})}))
"""
_HEAVY = {"torch", "transformers", "prefect", "mlflow", "lancedb", "numpy", "pandas", "pydantic", "rich", "typer"}


def test_importing_it_is_light_silent_and_changes_nothing():
    done = subprocess.run([sys.executable, "-c", _IMPORTED], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["same"]
    assert not _HEAVY & set(found["modules"])
    assert not done.stderr


@pytest.mark.parametrize("remember_episode", [True, False])
def test_a_policy_acts_as_in_its_rollouts(remember_episode):
    model, environment = load_model(SHIPPED / "textworld-tiny"), open_environment(CookingRecipe())
    options, format = (
        rollout_options(temperature=0.0, max_steps=4),
        plain_policy(model.format, remember_episode=remember_episode),
    )
    weights, tasks = engine_weights(model.network), environment.tasks("train", 2)
    episodes = Rollout(TorchEngine(weights, 0), format, environment, "real", options).play(tasks)
    agent = Agent(TorchEngine(weights, 0), format)
    for episode in episodes:
        turns = [(turn.state, turn.action) for turn in episode.turns]
        assert [agent.act(episode.task, state, turns[:i]) for i, (state, _) in enumerate(turns)] == episode.actions


def single_player(max_steps: int) -> SinglePlayerEnvironment:
    treasures = open_environment(PluginRecipe(name="treasures", families=("2",)))
    return SinglePlayerEnvironment(treasures, treasures.tasks("train", 3), max_steps)


def test_an_episode_ends_with_its_outcome_or_at_the_limit():
    played = single_player(max_steps=2)
    assert played.done
    with pytest.raises(InputError, match="no episode was started"):
        _ = played.task
    state = played.reset()
    assert played.task == played.tasks[0]
    (box, *_) = (line.removeprefix("- ").partition(":")[0] for line in state.splitlines())
    assert not played.step("look").done
    assert not played.done
    played.step("look")
    assert played.done
    with pytest.raises(InputError, match="reset first"):
        played.step("look")
    played.reset()
    assert played.step(f"break {box}").done
    assert played.done


def test_a_task_is_named_by_its_id():
    played = single_player(max_steps=2)
    played.reset(played.tasks[2].task_id)
    assert played.task == played.tasks[2]
    with pytest.raises(InputError, match="there is no task 'another'"):
        played.reset("another")
