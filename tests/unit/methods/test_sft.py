"""Cloning of better episodes."""

import pytest
import torch

from models.methods.losses import open_loss
from models.network.transformer import weights_of
from models.training.trained_logprobs import trained_logprobs
from schemas.recipes.methods import LossRecipe
from tests.training import group_of, rl, trainer_of
from tests.unit.methods.streams import tokens
from tests.unit.tiny import tiny_network


def test_only_better_episodes_are_left_and_all_their_action_tokens_count():
    marked = open_loss(LossRecipe(name="sft")).marked(group_of([tokens(2), tokens(2)], [1.0, -1.0]))
    assert [stream.ce_weights for stream in marked.streams] == [[0.0, 0.0, 1.0, 1.0]]


def test_the_loss_is_the_mean_cross_entropy_of_their_action_tokens():
    network = tiny_network(seed=1)
    group = group_of([tokens(3), tokens(2, first=20)], [1.0, -1.0])
    with torch.no_grad():
        expected = -trained_logprobs(weights_of(network, torch.float32), [group_of([tokens(3)], [1.0])], 1.0).mean()
    metrics = trainer_of(network, None, rl(loss={"name": "sft"}, updates_per_round=1)).train([group])
    assert metrics["ce"] == pytest.approx(expected.item(), rel=1e-5)
