"""Estimated time of matrix products, by hand."""

import pytest

from flows.planning.load_recipe import load_recipe
from flows.planning.plan import plan_of
from models.training.memory_estimate import num_weights
from schemas.recipes.recipe import Recipe
from tasks.planning import estimate_time
from tasks.planning.estimate import reviewed_tokens
from tasks.planning.estimate_time import least_seconds
from tasks.planning.token_lengths import Lengths
from tests.unit.tiny import tiny_network

LONGEST = Lengths(turn_prompt=90, action=10, situation=200)


def seconds(monkeypatch, **changes) -> dict[str, float]:
    """Return the estimate for a machine that does one operation per weight in a second."""
    config = tiny_network().config
    monkeypatch.setattr(estimate_time, "_speed", lambda where: float(num_weights(config)))
    recipe = Recipe(name="r", **changes)
    return least_seconds(recipe, plan_of(recipe), config, LONGEST, "cpu")


def test_two_operations_forwards_and_four_backwards(monkeypatch):
    found = seconds(
        monkeypatch,
        environment={"max_steps": 5},
        rl={"groups_per_round": 3},
        dream={"num_rounds": 2},
        real={"num_rounds": 1, "consolidate_every": 1},
        start={"num_demonstrations": 25},
    )
    # 2 rounds of 3 groups of 8, of 5 steps; 100 tokens of the policy and 200 + 128 of the model at each
    assert found["dream"] == 48 * 5 * (100 + 328) * 2
    # forwards and backwards, and forwards for the old policy and the reference; a third round in the real environment
    assert found["train policy"] == 72 * 5 * 100 * (6 + 2 + 2)
    # 25 demonstrations and three renamed copies of each, five times over
    assert found["start policy"] == 25 * 4 * 5 * 5 * 100 * 6
    # once more after the round in the real environment, with wins of all 200 tasks
    assert found["consolidation"] == 200 * 4 * 5 * 5 * 100 * 6
    # 200 tasks with 4 logged episodes, 400 of the policy's own, 0.3 renamed
    assert found["experience model"] == pytest.approx((800 + 400) * 1.3 * 5 * 328 * 6)


def test_a_consolidation_has_the_epochs_that_its_rounds_say(monkeypatch):
    dream = {"num_rounds": 4, "consolidate_every": 2, "consolidation_epochs": 2}
    found = seconds(
        monkeypatch, environment={"max_steps": 5}, dream=dream, real={"num_rounds": 1, "consolidate_every": 1}
    )
    # 200 tasks and three renamed copies of each: twice in 2 epochs, once in those of the start
    assert found["consolidation"] == 200 * 4 * (2 * 2 + 5) * 5 * 100 * 6


def test_adapters_go_half_the_way_back_and_an_endpoint_fits_nothing(monkeypatch):
    full = seconds(monkeypatch)
    less = seconds(
        monkeypatch, training={"lora_rank": 8}, rl={"loss": {"kl_coefficient": 0}}, experience={"endpoint_model": "m"}
    )
    assert less["start policy"] == full["start policy"] * 4 / 6
    assert less["train policy"] == full["train policy"] * (4 + 2) / 10
    assert less["experience model"] == 0


def test_replays_of_dreamt_wins_are_real_steps_that_a_plan_counts():
    changes = {"environment": {"max_steps": 5}, "rl": {"groups_per_round": 3}, "real": {"num_rounds": 0}}
    dream = {"num_rounds": 5, "consolidate_every": 2}
    replayed = plan_of(Recipe(name="r", dream=dream, **changes))
    assert replayed["max_real_training_steps"] == 4 * 3 * 5, "one of each task in the rounds before a consolidation"
    trusted = plan_of(Recipe(name="r", dream={**dream, "consolidated_wins": "dreamt"}, **changes))
    assert trusted["max_real_training_steps"] == 0


def test_early_experience_takes_real_steps_before_each_action_by_hand():
    small = ["real.num_rounds=0", "dream.consolidate_every=0", "start.num_demonstrations=2", "environment.max_steps=3"]
    asked = [*small, "start.early_experience.alternatives=4"]
    plan = plan_of(load_recipe("textworld-tiny", asked))
    assert plan["max_real_training_steps"] == 2 * (3 + 4 * (1 + 2 + 3)), "along it once, and up to each alternative"
    dreamt = [*asked, "start.early_experience.executed_in=dream", "start.early_experience.proposed_by=policy"]
    assert plan_of(load_recipe("textworld-tiny", dreamt))["max_real_training_steps"] == 0
    assert plan_of(load_recipe("textworld-tiny", small))["max_real_training_steps"] == 0


def test_a_taught_judge_is_shown_as_many_predictions_as_may_be_long():
    def tokens(*changes: str) -> int:
        return reviewed_tokens(load_recipe("textworld-tiny", ["experience.max_new_tokens=100", *changes]))

    assert tokens() == 0
    assert tokens("experience.judge.name=aggregate", "experience.judge.num_predictions=3") == 300
    assert tokens("experience.judge.name=revise") == 100
