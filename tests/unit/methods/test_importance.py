"""Default of the importance correction: on where another engine than the trainer's samples, and the recipe's word."""

import pytest

from flows.loop import fine_tune
from flows.loop import train_in_the_dream as dreaming
from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from models.methods.importance import corrected_for
from models.methods.losses import open_loss
from schemas.errors import RecipeError
from schemas.recipes.digests import digest_of
from schemas.recipes.learning import RlRecipe
from schemas.recipes.networks import EngineRecipe
from schemas.records import Reference
from schemas.runs import Artifacts
from tests.training import rl

TORCH, VLLM = EngineRecipe(), EngineRecipe(name="vllm", vllm_dtype="float32")
START = Reference("", "start", "model")


@pytest.mark.parametrize("name", ["clipped", "gspo", "cispo", "ppo"])
def test_tokens_are_corrected_where_vllm_samples_and_the_torch_engine_leaves_all_as_it_was(name):
    given = rl(loss={"name": name, "max_importance_ratio": 3.0})
    by_torch, by_vllm = corrected_for(given, TORCH), corrected_for(given, VLLM)
    assert by_torch == given
    assert digest_of(by_torch) == digest_of(given)
    assert not open_loss(by_torch.loss).corrects_staleness
    assert open_loss(by_vllm.loss).corrects_staleness
    assert by_vllm.loss.options == {**given.loss.options, "importance_correction": "token"}
    assert by_vllm.model_copy(update={"loss": given.loss}) == given


@pytest.mark.parametrize("engine", [TORCH, VLLM])
@pytest.mark.parametrize("kind", ["none", "token", "sequence"])
def test_what_a_recipe_says_stands_with_every_engine(engine, kind):
    given = rl(loss={"importance_correction": kind})
    assert corrected_for(given, engine) == given


@pytest.mark.parametrize("name", ["dpo", "sft"])
def test_a_loss_without_importance_weights_stays(name):
    given = RlRecipe.model_validate({"loss": {"name": name}})
    assert corrected_for(given, VLLM) == given


@pytest.mark.parametrize(("engine", "corrected"), [("torch", "auto"), ("vllm", "token")])
def test_training_in_the_dream_and_for_real_corrects_for_the_engine_that_plays(monkeypatch, engine, corrected):
    recipe, trained = load_recipe("textworld-tiny", [f"engine.name={engine}"]), []

    def train_policy(_policy, _reference, _groups, rl, *_, **__):
        trained.append(open_loss(rl.loss).options.importance_correction)
        return {"policy": START, "metrics": {}}

    groups = [Reference("", "groups", "trajectories", {"num_episodes": 1, "num_transitions": 1})]
    made = dreaming.Lineage(Artifacts(start=START, experience=[START], pool=START))
    for module in (dreaming, fine_tune):
        monkeypatch.setattr(module, "train_policy", train_policy)
    monkeypatch.setattr(fine_tune, "real_round", lambda *_: groups)
    for name in ("show_rollouts", "observe", "log"):
        monkeypatch.setattr(fine_tune, name, lambda *_: None)
    monkeypatch.setattr(fine_tune, "rollout_metrics", lambda _: {})
    values = dreaming.StateValues(recipe, made)
    dreaming.trained_on(recipe, made, START, START, [], groups, values)
    fine_tune.RealTraining(recipe, recipe.real_rl, made, START).run_round(0)
    assert trained == [corrected, corrected]


def test_rounds_dreamt_ahead_are_corrected_by_default_where_vllm_samples():
    ahead = ["dream.max_staleness=1"]
    with pytest.raises(RecipeError, match="max_staleness needs a loss that corrects for it"):
        require_methods(load_recipe("textworld-tiny", ahead))
    require_methods(load_recipe("textworld-tiny", [*ahead, "engine.name=vllm"]))
    with pytest.raises(RecipeError, match="max_staleness needs a loss that corrects for it"):
        require_methods(
            load_recipe("textworld-tiny", [*ahead, "engine.name=vllm", "rl.loss.importance_correction=none"])
        )
