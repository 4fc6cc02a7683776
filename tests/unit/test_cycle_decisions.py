"""End of training in the dream, and choice of the candidate among its policies."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from flows.loop import consolidation, evaluate_and_judge, rounds
from flows.loop import train_in_the_dream as flow
from flows.planning.load_recipe import load_recipe
from schemas.recipes.learning import CurriculumRecipe, DreamRecipe, RlRecipe
from schemas.recipes.methods import ReplayRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from schemas.runs import Artifacts


def policy(name: str) -> Reference:
    return Reference("", name, "model")


@pytest.fixture
def train(monkeypatch):
    """Return a function that trains in the dream: round n makes policy n, and the test gives the calibrations."""

    def run(calibrations: dict[str, tuple[float, float]], **dream) -> tuple[flow.Lineage, MagicMock]:
        def evaluated(_recipe, _made, _name, who, _split, _num_tasks, _round):
            real, gap = calibrations[who.sha256]
            measured = {"real_success": real, "dream_success": real + gap, "dream_real_gap": gap}
            return measured | {"interval_low": real - 0.05}

        def train_policy(trained, reference, _groups, _recipe, _training, _environment, _stage, round, *_):
            display.train(trained.sha256, reference.sha256)
            return {"policy": policy(str(round + 1)), "metrics": {"dream_success": 0.6}}

        display = MagicMock()
        context = SimpleNamespace(display=display, tracker=MagicMock(), run_id="cycle-1")
        for module in (flow, consolidation):
            monkeypatch.setattr(module, "run_context", lambda: context)
            monkeypatch.setattr(module, "log", lambda *_: None)
        monkeypatch.setattr(flow, "alarm", display.alarm)
        monkeypatch.setattr(flow, "measure_fidelity", lambda *_: {"state_exact": 1.0})
        monkeypatch.setattr(flow, "evaluated", evaluated)
        monkeypatch.setattr(flow, "train_policy", train_policy)
        monkeypatch.setattr(flow, "show_rollouts", lambda *_: None)
        monkeypatch.setattr(flow, "publish_weights", lambda *_: None)
        monkeypatch.setattr(flow, "RoundPolicies", MagicMock())  # nothing is stored here
        data = Reference("", "data", "tasks", {"num_tasks": 1, "refused_actions": 0.0})
        monkeypatch.setattr(flow, "pool_tasks", lambda *_: data)
        for task in ("propose_tasks", "dream"):
            monkeypatch.setattr(rounds, task, lambda *_: data)
        monkeypatch.setattr(rounds, "observe_groups", lambda *_: {"state": {}, "missing": 0})
        models = {"backbone": policy("backbone"), "experience_model": policy("model")}
        made = flow.Lineage(Artifacts(start=policy("0"), experience=[], **models))
        recipe = Recipe(name="test", curriculum=CurriculumRecipe(generate=False), dream=DreamRecipe(**dream))
        flow.train_in_the_dream(recipe, made)
        return made, display

    return run


def test_the_candidate_is_the_policy_that_did_best_for_real_on_valid_tasks(train):
    calibrations = {"0": (0.5, 0.0), "2": (0.8, 0.1), "4": (0.7, 0.1), "5": (0.75, 0.1)}
    made, _ = train(calibrations, num_rounds=5, calibrate_every=2)
    assert [one["round"] for one in made.calibrations] == [0, 2, 4, 5]
    assert made.artifacts.dream == policy("2")


def test_each_round_is_shown_with_the_real_success_of_the_last_calibration(train):
    calibrations = {"0": (0.5, 0.0), "2": (0.8, 0.1), "3": (0.7, 0.1)}
    _, display = train(calibrations, num_rounds=3, calibrate_every=2)
    assert [call.args for call in display.round.call_args_list] == [(1, 3), (2, 3), (3, 3)]
    concluded = display.round.return_value.__enter__.return_value.call_args_list
    assert [call.args[0] for call in concluded] == [f"dream 60%, real (valid) {real}" for real in ("50%", "80%", "70%")]


def test_nothing_is_announced_while_dreams_hold(train):
    _, display = train({"0": (0.5, 0.0), "1": (0.5, 0.1)}, num_rounds=1, max_gap=0.2)
    display.alarm.assert_not_called()


def test_of_equals_the_later_is_the_candidate(train):
    made, _ = train({"0": (0.5, 0.0), "1": (0.5, 0.0), "2": (0.4, 0.0)}, num_rounds=2, calibrate_every=1)
    assert made.artifacts.dream == policy("1")


@pytest.mark.parametrize("gap", [0.21, -0.21])
def test_training_stops_where_dream_and_real_part_either_way(train, gap):
    made, display = train({"0": (0.5, 0.0), "1": (0.4, gap)}, num_rounds=5, calibrate_every=1, max_gap=0.2)
    assert len(made.rounds) == 1
    assert made.artifacts.dream == policy("0")
    assert "stopped after round 1" in display.say.call_args.args[0]
    assert display.alarm.call_args.args[0]["dream_real_gap"] == gap


def test_training_ends_once_the_lower_bound_of_real_success_reaches_the_target(train):
    calibrations = {"0": (0.5, 0.0), "1": (0.94, 0.0), "2": (0.96, 0.0)}
    made, display = train(calibrations, num_rounds=5, calibrate_every=1, target=0.9)
    assert len(made.rounds) == 2
    assert made.artifacts.dream == policy("2")
    assert display.say.call_args.args[0].startswith("ended after round 2 of 5: real success is at least 91.0%")


def test_training_ends_where_success_has_not_risen_for_as_many_calibrations_as_patience_allows(train):
    falls_rises_stays = {"0": 0.5, "1": 0.4, "2": 0.6, "3": 0.6, "4": 0.6}
    calibrations = {name: (real, 0.0) for name, real in falls_rises_stays.items()}
    made, display = train(calibrations, num_rounds=9, calibrate_every=1, patience=2)
    assert made.artifacts.dream == policy("4"), "of equals the later"
    assert display.say.call_args.args[0].endswith("no rise of success on valid tasks in 2 calibrations")


def test_a_policy_that_is_good_before_training_is_trained_until_the_first_calibration(train):
    made, display = train({"0": (1.0, 0.0), "2": (1.0, 0.0)}, num_rounds=2, calibrate_every=2, target=0.9)
    assert len(made.rounds) == 2
    display.say.assert_not_called()  # all rounds were run


def test_without_rounds_the_candidate_is_the_start(train):
    made, _ = train({"0": (0.5, 0.0)}, num_rounds=0)
    assert made.artifacts.dream == policy("0")


def test_where_they_part_the_experience_model_may_be_refitted_and_training_goes_on(train, monkeypatch):
    fitted, played = policy("refitted"), Reference("", "played", "trajectories", {"num_real_steps": 7})
    monkeypatch.setattr(flow, "play_where_dreams_err", lambda *_: played)
    monkeypatch.setattr(flow, "annotate", lambda *_: policy("own"))
    monkeypatch.setattr(flow, "newly_fitted", lambda *_: fitted)
    calibrations = {"0": (0.5, 0.0), "1": (0.6, 0.3), "2": (0.7, 0.3)}
    made, display = train(calibrations, num_rounds=2, calibrate_every=1, max_gap=0.2, when_gap_exceeded="refit")
    assert len(made.rounds) == 2
    assert made.artifacts.experience_model == fitted
    assert made.artifacts.experience == [policy("own")]
    assert made.real_interactions == {"dream": 7}, "after the last round there is nothing to refit for"
    assert "refitting" in display.say.call_args.args[0]


@pytest.fixture
def clone(monkeypatch):
    """Return a mock that clones a policy from wins, of which some consolidations find no new ones."""

    def use(*found: str) -> MagicMock:
        each = [Reference("", name, "trajectories", {"num_real_steps": 10, "num_episodes": 1}) for name in found]
        monkeypatch.setattr(consolidation, "collect_wins", MagicMock(side_effect=each))
        cloned = MagicMock(
            side_effect=lambda *given: Reference("", f"of {given[-1][0].sha256}", "model", {"num_demonstrations": 3})
        )
        monkeypatch.setattr(consolidation, "cloned", cloned)
        return cloned

    return use


CONSOLIDATED = {"0": (0.5, 0.0), "of wins": (0.6, 0.0), "4": (0.5, 0.0), "of more wins": (0.9, 0.0)}


def test_training_continues_from_the_consolidated_policy_which_losses_then_refer_to(train, clone):
    clone("wins", "more wins")
    made, display = train(CONSOLIDATED, num_rounds=4, calibrate_every=2, consolidate_every=2)
    assert [call.args for call in display.train.call_args_list] == [
        ("0", "0"),
        ("1", "0"),
        ("of wins", "of wins"),
        ("3", "of wins"),
    ]
    assert made.artifacts.dream.sha256 == "of more wins"
    assert made.artifacts.wins.sha256 == "more wins"
    assert made.real_interactions == {"dream": 20}


@pytest.mark.parametrize(("epochs", "cloned_in"), [(0, 5), (1.5, 1.5)])
def test_a_consolidation_takes_its_own_epochs_or_those_of_the_start(train, clone, epochs, cloned_in):
    cloned = clone("wins", "more wins")
    train(CONSOLIDATED, num_rounds=4, calibrate_every=2, consolidate_every=2, consolidation_epochs=epochs)
    assert [call.args[0].start.sft.epochs for call in cloned.call_args_list] == [cloned_in, cloned_in]


def test_without_new_wins_training_continues_as_it_was(train, clone):
    cloned = clone("wins", "wins")
    made, _ = train(CONSOLIDATED, num_rounds=4, calibrate_every=2, consolidate_every=2)
    assert cloned.call_count == 1
    assert made.artifacts.dream.sha256 == "of wins"


def test_no_round_is_dreamt_in_advance_across_a_consolidation():
    asked = DreamRecipe(num_rounds=10, calibrate_every=5, consolidate_every=3, max_staleness=4)
    assert [flow.last_to_begin(asked, round) for round in range(6)] == [2, 2, 2, 4, 4, 5]


def test_only_a_recipe_that_replays_sees_the_groups_of_its_last_rounds_again():
    played = [[policy("a")], [policy("b"), policy("c")], [policy("d")]]
    assert rounds.earlier_rounds(RlRecipe(), played) == []
    replaying = RlRecipe(replay=ReplayRecipe(name="self-imitation", rounds=2))
    assert [one.sha256 for one in rounds.earlier_rounds(replaying, played)] == ["b", "c", "d"]
    assert rounds.earlier_rounds(replaying, []) == []


@pytest.mark.parametrize(
    ("changes", "dreaming"), [([], ["sim_to_real"]), (["evaluation.panel=pinned"], ["dream", "sim_to_real"])]
)
def test_on_another_panel_only_the_fine_tuned_policy_dreams(monkeypatch, changes, dreaming):
    asked: dict[str, int] = {}

    def evaluated(recipe, _made, stage, *_) -> dict:
        asked[stage.removeprefix("evaluate ")] = recipe.evaluation.max_dreamt_tasks
        return {}

    recipe = load_recipe("textworld-tiny", changes)
    monkeypatch.setattr(evaluate_and_judge, "evaluated", evaluated)
    monkeypatch.setattr(evaluate_and_judge, "champion_to_beat", lambda *_, **__: None)
    monkeypatch.setattr(evaluate_and_judge, "judged", lambda *_: {})
    monkeypatch.setattr(evaluate_and_judge, "take_panel", lambda *_: 1)
    monkeypatch.setattr(evaluate_and_judge, "blobs", lambda: None)
    monkeypatch.setattr(evaluate_and_judge, "run_context", lambda: SimpleNamespace(run_id="cycle-1"))
    made = flow.Lineage(Artifacts(dream=policy("a"), sim_to_real=policy("b")))
    evaluate_and_judge.evaluate_and_judge_fine_tuned(recipe, made)
    assert [name for name, num_tasks in asked.items() if num_tasks] == dreaming
    assert set(made.evaluations) == {"sim_to_real"}
