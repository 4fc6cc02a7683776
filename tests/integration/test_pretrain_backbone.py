"""`make backbone` on a plan of seconds: from games alone to a folder that a recipe can name."""

import math
from dataclasses import replace

import pytest
import torch

from models.network.language_model import load_model
from models.training.sft import sft_loss
from schemas.errors import IntegrityError
from schemas.recipes.networks import BackboneRecipe
from tasks.backbones.find_backbone import folder_digest
from tasks.backbones.pretrain_backbone import BackbonePlan, Leg, batch_stream, pretrain

LEG = Leg(num_updates=60, learning_rate=5e-3, names_from_vocabulary=False, seed=0)
PLAN = BackbonePlan(hidden_size=32, num_layers=1, num_heads=2, vocab_size=512, legs=(LEG,))


def loss_of(folder) -> float:
    model = load_model(folder)
    with torch.no_grad():
        return sft_loss(model.network, next(batch_stream(model.format, replace(LEG, seed=9))), torch.float32).item()


@pytest.mark.integration
def test_a_backbone_is_made_from_nothing_learns_and_goes_on(tmp_path):
    pretrain(tmp_path, PLAN)
    learnt = loss_of(tmp_path)
    assert learnt < 0.75 * math.log(PLAN.vocab_size), "better than chance on games of another seed"
    pretrain(tmp_path, replace(PLAN, legs=(LEG, LEG)), first_leg=1)
    assert loss_of(tmp_path) < learnt
    recipe = BackboneRecipe(model=str(tmp_path))
    assert folder_digest(recipe) == folder_digest(recipe)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(IntegrityError, match=r"tokenizer\.json is missing or corrupt"):
        folder_digest(recipe)
