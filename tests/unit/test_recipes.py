"""Every shipped recipe is valid, is named as its file is, and can be planned."""

import tomllib

import pytest

from flows.planning.load_recipe import SHIPPED, load_recipe
from flows.planning.plan import plan_of
from flows.planning.require_methods import require_methods
from flows.try_methods import ASKED, comparisons, stored_rows
from schemas.errors import RecipeError
from schemas.recipes.recipe import stored_recipe


@pytest.mark.parametrize("name", sorted(path.stem for path in SHIPPED.glob("*.toml")))
def test_a_shipped_recipe_is_valid(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.description
    assert all(count >= 0 for count in plan_of(recipe).values())


def test_a_backbone_of_the_logs_has_heads_that_fit():
    with pytest.raises(RecipeError, match="hidden_size 100 is no multiple of twice num_heads, 8"):
        load_recipe("alfworld-tiny", ["backbone.scratch.hidden_size=100"])


@pytest.mark.parametrize("changes", [["start.from=run"], ["start.run=night-1"], ["start.policy=dream"]])
def test_a_start_from_a_run_names_it(changes):
    with pytest.raises(RecipeError, match=r"goes with start\.run"):
        load_recipe("textworld-tiny", changes)
    whole = load_recipe("textworld-tiny", ["start.from=run", "start.run=night-1", "start.policy=sim-to-real"])
    assert whole.start.policy.key == "sim_to_real"


def test_a_model_at_an_endpoint_learns_no_transitions():
    with pytest.raises(
        RecipeError, match=r"learn_transitions fits a network here; leave experience\.endpoint_model empty"
    ):
        load_recipe("textworld-tiny", ["backbone.learn_transitions=true", 'experience.endpoint_model="a/b"'])


@pytest.mark.parametrize(
    ("num_gpus", "has_vllm", "changes", "chosen"),
    [
        (0, True, ["experience.max_prompt_tokens=9000"], "torch"),
        (1, True, [], "torch"),
        (1, True, ["experience.max_prompt_tokens=9000"], "vllm"),
        (1, True, ["policy.max_episode_tokens=4097"], "vllm"),
        (2, True, [], "vllm"),
        (2, False, [], "torch"),
    ],
)
def test_the_machine_chooses_an_engine_that_the_recipe_leaves_to_it(num_gpus, has_vllm, changes, chosen):
    recipe = load_recipe("textworld-tiny", ["engine.name=auto", "policy.max_episode_tokens=4096", *changes])
    assert recipe.with_engine_for(num_gpus, has_vllm=has_vllm).engine.name == chosen
    named = load_recipe("textworld-tiny", ["engine.name=vllm"])
    assert named.with_engine_for(0, has_vllm=False) == named


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        (["engine.policy_gpus=[1,1]"], r"\[1, 1\] names one twice"),
        (["engine.experience_gpus=[-1]"], r"engine\.experience_gpus"),
        (["engine.sleep=true", "dream.max_staleness=1"], r"engine\.sleep needs dream\.max_staleness = 0"),
    ],
)
def test_gpus_of_an_engine_that_cannot_be_are_refused(changes, problem):
    with pytest.raises(RecipeError, match=problem):
        load_recipe("textworld-tiny", changes)


def test_several_episodes_of_a_task_are_asked_of_a_sampled_policy_only():
    with pytest.raises(RecipeError, match=r"episodes_per_task above 1 needs an evaluation\.temperature above 0"):
        load_recipe("textworld-tiny", ["evaluation.episodes_per_task=3"])


@pytest.mark.parametrize(
    ("change", "is_fitted_anew"),
    [
        ("judge.num_votes=3", False),
        ("max_new_tokens=77", False),
        ("entity_renaming=0.77", True),
        ("sft.epochs=7", True),
    ],
)
def test_what_only_a_prediction_depends_on_fits_no_experience_model_anew(change, is_fitted_anew):
    as_it_is, changed = load_recipe("textworld-tiny"), load_recipe("textworld-tiny", [f"experience.{change}"])
    assert (as_it_is.experience.as_fitted != changed.experience.as_fitted) == is_fitted_anew


@pytest.mark.parametrize(
    ("change", "meant"),
    [
        ("rl.group_sise=4", "group_size"),
        ("rll.group_size=4", "rl"),
        ("environment.num_train_task=4", "num_train_tasks"),
    ],
)
def test_a_misspelt_field_is_refused_and_the_closest_one_is_named(change, meant):
    with pytest.raises(RecipeError, match=rf"no such field \(did you mean '{meant}'\?\)"):
        load_recipe("textworld-tiny", [change])


def test_changes_are_texts_or_values():
    values = {"rl.group_size": 4, "environment.families": {"cut": {"recipe": 2}}, "description": "a=b"}
    texts = ["rl.group_size=4", "environment.families={cut={recipe=2}}", "description=a=b"]
    assert load_recipe("textworld-tiny", values) == load_recipe("textworld-tiny", texts)
    with pytest.raises(RecipeError, match="description is not a section"):
        load_recipe("textworld-tiny", {"description.text": 1})


def test_a_misspelt_recipe_is_refused_and_the_closest_one_is_named():
    with pytest.raises(RecipeError, match=r"no recipe 'textworld-tyni' \(did you mean 'textworld-tiny'\?\)"):
        load_recipe("textworld-tyni")


@pytest.mark.parametrize(
    ("change", "now"),
    [
        ("grpo.learning_rate=1", r"grpo\.learning_rate is now rl\.learning_rate"),
        ("grpo.kl_coefficient=0", r"grpo\.kl_coefficient is now rl\.loss\.kl_coefficient"),
        ("experience.num_votes=3", r"experience\.num_votes is now experience\.judge\.num_votes"),
        ("grpo.nonsense=3", r"grpo\.nonsense: no such field; the section is now rl"),
    ],
)
def test_a_former_field_is_refused_with_its_present_name(change, now):
    with pytest.raises(RecipeError, match=now):
        load_recipe("textworld-tiny", [change])


def test_a_recipe_that_a_former_version_stored_is_read_with_present_names():
    stored = {
        "name": "night",
        "grpo": {"group_size": 4, "clip_low": 0.2, "kl_coefficient": 0.01, "renamed_share": 0.1},
        "experience": {"num_votes": 3, "heed_lists": False},
        "gate": {"champion_margin": 0.01},
    }
    recipe = stored_recipe(stored)
    assert (recipe.rl.group_size, recipe.rl.entity_renaming) == (4, 0.1)
    assert recipe.rl.loss.options == {"kl_coefficient": 0.01}, "what had its default is left to the method"
    assert recipe.experience.judge.options == {"num_votes": 3}
    assert not recipe.experience.enforce_admissible_actions


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("rl.loss.clip_lo=0.1", r"rl\.loss\.clip_lo: no such field \(did you mean 'clip_low'\?\)"),
        ("rl.loss.name=cliped", r"no loss 'cliped' \(did you mean 'clipped'\?\)"),
        ("rl.advantage.negative_scale=-1", r"rl\.advantage\.negative_scale: Input should be greater"),
        ("dream.max_staleness=1", "needs a loss that corrects for it"),
    ],
)
def test_methods_and_their_options_are_checked_before_anything_runs(change, problem):
    with pytest.raises(RecipeError, match=problem):
        require_methods(load_recipe("textworld-tiny", [change]))


def test_methods_that_need_each_other_are_refused_alone():
    recipe = load_recipe("textworld-tiny", ["rl.loss.name=ppo"])
    with pytest.raises(RecipeError, match=r"rl\.loss 'ppo' needs rl\.advantage\.name = 'critic', not 'grpo'"):
        require_methods(recipe)
    require_methods(load_recipe("textworld-tiny", ["rl.loss.name=ppo", "rl.advantage.name=critic"]))


def test_every_method_to_compare_is_one_that_its_recipe_can_use():
    known = tomllib.loads(ASKED.read_text())["methods"]
    for comparison in comparisons():
        for title in comparison.methods:
            require_methods(comparison.recipe_of(known[title], seed=0))


def test_every_stored_row_is_that_of_its_method_as_it_is_listed_now():
    known, by_name = tomllib.loads(ASKED.read_text())["methods"], {one.name: one for one in comparisons()}
    for row in stored_rows():
        key = by_name[row.recipe].key_of(known[row.method], row.seed)
        assert row.key == key, (row.recipe, row.method, row.seed)
