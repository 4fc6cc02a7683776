"""Backbone that is built from logs alone: it knows their words, and has learnt from them."""

import random

import pytest
import torch

from infra.environments.cooking.annotator import FactsAnnotator
from infra.environments.cooking.environment import CookingEnvironment
from models.examples.supervised import grounded
from models.rollout.behaviour_policies import collect
from models.training.sft import sft_loss
from schemas.recipes.data import RetrievalRecipe
from schemas.recipes.environments import CookingFamily
from schemas.recipes.networks import ExperienceRecipe, ScratchRecipe, SftRecipe
from tasks.backbones.backbone_from_logs import backbone_from_logs, blank_model, whole_transitions
from tasks.data.annotate import with_reasoning
from tasks.data.retrieval_index import index_over
from tasks.data.rows import trajectory_id
from tasks.running.artifacts import get_frozen_model, put_trajectories

SMALL = ScratchRecipe(
    hidden_size=32,
    num_layers=1,
    num_heads=2,
    vocab_size=512,
    sft=SftRecipe(epochs=4, learning_rate=5e-3, tokens_per_update=1_024),
)


@pytest.mark.parametrize("relu_share", [0.0, 0.5])
def test_it_predicts_the_next_token_of_what_was_logged(in_a_cycle, relu_share):
    environment = CookingEnvironment({"one": {**CookingFamily().model_dump(), "take": 1}})
    played = collect(environment, environment.tasks("train", 8), [0.0, 0.3], seed=0, max_steps=8)
    traces = FactsAnnotator().annotate(played)
    episodes = [with_reasoning(one, own) for one, own in zip(played, traces, strict=True)]
    logs = put_trajectories(episodes)
    recipe = SMALL.model_copy(update={"relu_share": relu_share})
    made = get_frozen_model(backbone_from_logs.__wrapped__(logs, recipe, RetrievalRecipe(), 1, True, 0))
    blank = blank_model(SMALL, episodes, 0)
    situations = grounded(
        episodes[0],
        trajectory_id(episodes[0]),
        index_over(RetrievalRecipe(), [logs]),
        ExperienceRecipe(),
        1,
        random.Random(0),
    )
    shown = list(whole_transitions(made.format, episodes[0], situations, True))
    assert all(all(example.is_target) for example in shown)
    assert all(made.format.decode(made.format.ids(one.action)) == one.action for one in episodes[0].turns)
    with torch.no_grad():
        before, after = (sft_loss(one.network, shown, torch.float32).item() for one in (blank, made))
    assert after < 0.6 * before
