"""CISPO, by hand."""

import math

import pytest
import torch

from models.methods.losses import open_loss
from schemas.recipes.methods import LossRecipe
from tests.training import batch_of


def test_a_truncated_ratio_weighs_the_gradient_and_does_not_stop_it():
    # ratios e and 1: truncated to 2 and 1, times the advantages 3 and -1
    new = torch.tensor([-1.0, -2.0], requires_grad=True)
    old = torch.tensor([-2.0, -2.0])
    loss, sums = open_loss(LossRecipe(name="cispo", max_ratio=2.0)).rl(batch_of(new, old, torch.tensor([3.0, -1.0])))
    assert loss.item() == pytest.approx(-(2 * 3 * -1.0) - (1 * -1 * -2.0))
    loss.backward()
    assert new.grad.tolist() == pytest.approx([-6.0, 1.0])
    assert sums["clipped"] == 1


def test_samples_of_another_policy_are_weighed():
    # the old policy finds the token twice as likely as its sampler did
    new = torch.tensor([-1.0])
    batch = batch_of(new, new, torch.tensor([1.0]), sampled=torch.tensor([-1.0 - math.log(2)]))
    loss, _ = open_loss(LossRecipe(name="cispo", importance_correction="token")).rl(batch)
    assert loss.item() == pytest.approx(2.0)
