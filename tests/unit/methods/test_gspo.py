"""The sequence-level surrogate, by hand."""

import math

import pytest
import torch

from models.methods.losses import open_loss
from models.methods.streams import num_units
from schemas.recipes.methods import LossRecipe
from tests.training import batch_of, group_of
from tests.unit.methods.streams import tokens


def loss_of(**options):
    return open_loss(LossRecipe(name="gspo", **options))


def test_the_ratio_of_a_stream_is_the_geometric_mean_over_its_tokens():
    # log-ratios 0.4 and 0: mean 0.2, clipped to 1.1 with advantage 2; of the other stream -0.3, advantage -1: 0.9
    new, old = torch.tensor([-1.0, -1.0, -1.3]), torch.tensor([-1.4, -1.0, -1.0])
    advantages = torch.tensor([2.0, 2.0, -1.0])
    loss, sums = loss_of(clip_low=0.1, clip_high=0.1).rl(batch_of(new, old, advantages, lengths=[2, 1]))
    assert loss.item() == pytest.approx(-2.2 + 0.9)
    assert sums["clipped"] == 2
    unclipped, _ = loss_of(clip_low=0.5, clip_high=0.5).rl(batch_of(new, old, advantages, lengths=[2, 1]))
    assert unclipped.item() == pytest.approx(-2 * math.exp(0.2) + math.exp(-0.3))


def test_it_is_a_mean_over_streams():
    assert num_units([group_of([tokens(3), tokens(1)], [1.0, -1.0])], loss_of().unit) == 2


def test_a_kl_term_marks_action_tokens_for_the_trainer():
    group = group_of([tokens(2)], [1.0])
    assert loss_of().marked(group) is group
    (stream,) = loss_of(kl_coefficient=0.1).marked(group).streams
    assert stream.ref_kl_weights == [0.0, 0.0, 0.1, 0.1]
    assert loss_of(kl_coefficient=0.1).needs_reference
