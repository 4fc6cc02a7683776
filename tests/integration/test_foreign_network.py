"""A network that our own forward pass does not know clones an expert, plays, and is trained on its own episodes."""

import math
from dataclasses import replace

import pytest
import torch
from transformers import AutoTokenizer

from infra.environments.by_name import open_environment
from models.methods.scoring import Scoring
from models.network.language_model import load_model
from models.network.transformer import is_foreign
from models.rollout.behaviour_policies import collect
from models.rollout.rollouts import Rollout
from models.training.sft import sft_loss
from models.training.trained_logprobs import divergence
from schemas.recipes.learning import StartRecipe
from schemas.recipes.networks import EngineRecipe, SftRecipe, TrainingRecipe
from schemas.recipes.recipe import Recipe
from tasks.backbones.find_backbone import SHIPPED
from tasks.learning.clone_policy import clone_policy, cloning_examples
from tasks.learning.train_policy import train_policy
from tasks.running.artifacts import forget, get_frozen_model, put_model, put_trajectories
from tasks.running.engines import open_engine
from tests.rollouts import plain_policy, rollout_options
from tests.unit.tiny import tiny_network

pytestmark = pytest.mark.integration
RECIPE = Recipe(name="foreign")
START = StartRecipe(renamed_copies=0, sft=SftRecipe(epochs=10, learning_rate=3e-3, tokens_per_update=1_024))
RL = RECIPE.rl.model_copy(update={"temperature": 1.0, "warmup_updates": 0, "learning_rate": 1e-3, "max_kl": 10.0})


@pytest.fixture
def backbone(in_a_cycle, tmp_path):
    """Return a function that stores a random network with the shipped tokenizer."""

    def stored(kind: str):
        tokenizer = AutoTokenizer.from_pretrained(SHIPPED / "textworld-tiny")
        tiny_network(kind=kind, vocab_size=len(tokenizer)).save_pretrained(tmp_path / kind)
        tokenizer.save_pretrained(tmp_path / kind)
        return put_model(load_model(tmp_path / kind))

    return stored


def loss_on(policy, demonstrations) -> float:
    """Return the loss on an expert's actions."""
    model, real = get_frozen_model(policy), open_environment(RECIPE.environment)
    examples = cloning_examples(demonstrations, model, START, RECIPE.policy, real, 0)
    with torch.no_grad():
        return sft_loss(model.network, examples, torch.float32).item()


def played(policy, num_episodes: int):
    """Return episodes of one task by the torch engine, every other one of which is said to have won."""
    environment, engine = open_environment(RECIPE.environment), open_engine("policy", policy, EngineRecipe(), 0, 512)
    format = plain_policy(get_frozen_model(policy).format, remember_episode=False)
    rollout = Rollout(engine, format, environment, "dream", rollout_options(max_steps=3))
    (task,) = environment.tasks("train", 1)
    for number, episode in enumerate(rollout.play([task] * num_episodes)):
        last, won = episode.turns[-1], number % 2 == 1
        turn = replace(last, step=replace(last.step, reward=float(won), done=True, success=won))
        yield replace(episode, group_id="one", turns=[*episode.turns[:-1], turn], truncated=False)


@pytest.mark.parametrize(
    ("kind", "training"),
    [("gemma3", TrainingRecipe(gradient_checkpointing=True)), ("lfm2", TrainingRecipe(lora_rank=8))],
    ids=["gemma3", "lfm2 with adapters"],
)
def test_a_network_of_another_architecture_is_cloned_plays_and_is_trained(backbone, kind, training):
    start, real = backbone(kind), open_environment(RECIPE.environment)
    demonstrations = collect(real, real.tasks("train", 6), [0.0], 0, 20)
    logs = put_trajectories(demonstrations)
    cloned = clone_policy.__wrapped__(start, [logs], START, RECIPE.policy, training, RECIPE.environment, 0)
    assert loss_on(cloned, demonstrations) < 0.8 * loss_on(start, demonstrations)
    forget()  # so that the policy is loaded as it was stored
    episodes = list(played(cloned, 8))
    groups, _ = Scoring.of(RL).informative_groups(episodes)
    network = get_frozen_model(cloned).network
    assert is_foreign(network)
    assert divergence(network, groups, 1.0, 4_000) == pytest.approx(0, abs=2e-3)
    stored = put_trajectories(episodes)
    trained = train_policy.__wrapped__(cloned, start, [stored], RL, training, RECIPE.environment, "dream", 0)
    assert trained["policy"] != cloned
    assert math.isfinite(trained["metrics"]["loss"])
    assert 1e-6 < trained["metrics"]["kl_of_round"] < 10
    forget()
    assert len(list(played(trained["policy"], 2))) == 2
