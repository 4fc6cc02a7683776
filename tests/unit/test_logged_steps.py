"""Scores of predicted next states on logged steps, by hand, and splits of logged tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.logs.held_out_shares import held_out_shares
from infra.environments.logs.opened import LoggedEnvironment
from models.measurement.logged_steps import gain_over, scores, word_f1
from schemas.errors import DataError, InputError
from schemas.recipes.environments import LogsRecipe
from schemas.records import AgentTask, Step, Trajectory, Turn
from tasks.data.held_out_logs import split_of, with_splits


def episode(task_id: str, split: str = "train") -> Trajectory:
    task = AgentTask(task_id, "go", split, "logged", initial_state="- line 1: here")
    return Trajectory(task, "real", [Turn("- line 1: here", "go", Step("- line 1: there", 1.0, True, True))])


def test_word_f1_by_hand():
    # common: a b, precision 2/4, recall 2/3
    assert word_f1("a b x y", "a b c") == pytest.approx(4 / 7)
    # each word counts as often as in both: common a once
    assert word_f1("a a", "a b") == 0.5
    assert word_f1("x", "y") == 0.0
    assert word_f1("", "") == 1.0


def test_a_gain_over_a_baseline_is_paired_by_episode():
    # episodes gain 0.5 and 0.1 on average: mean 0.3, sd 0.2828, standard error 0.2, t(0.975, 1) = 12.706
    gain = gain_over([1.0, 1.0, 0.6], [0.0, 1.0, 0.5], ["a", "a", "b"])
    assert (gain.mean, gain.low, gain.high) == (pytest.approx(0.3), -1, 1)
    gain = gain_over([0.9] * 400, [0.4, 0.6] * 200, [str(number) for number in range(400)])
    # sd 0.1001: 1.966 * 0.1001 / 20 = 0.00984
    assert (gain.mean, gain.low) == (pytest.approx(0.4), pytest.approx(0.39016, abs=1e-4))


@given(st.lists(st.text("abc ", max_size=8), min_size=1, max_size=6))
def test_scores_are_shares_and_the_truth_scores_one(states):
    assert scores(states, states) == [1.0] * len(states)
    assert all(0 <= one <= 1 for one in scores(states, states[::-1]))


@given(st.text(max_size=20), st.floats(0.05, 0.4), st.floats(0.05, 0.4))
def test_a_task_keeps_its_split_whatever_else_is_logged(task_id, valid_share, test_share):
    asked = LogsRecipe(valid_share=valid_share, test_share=test_share)
    larger = LogsRecipe(valid_share=valid_share, test_share=min(0.5, 1.1 * test_share))
    assert split_of(task_id, asked) == split_of(task_id, asked)
    if split_of(task_id, asked) == "test":
        assert split_of(task_id, larger) == "test", "a larger share holds out more tasks, and none less"


def test_shares_of_the_tasks_are_held_out_with_all_their_episodes():
    logged = [episode(f"task {number}") for number in range(1_000) for _ in range(2)]
    dealt = with_splits(logged, LogsRecipe(valid_share=0.1, test_share=0.2))
    of_task = {one.task.task_id: {other.task.split for other in dealt if other.task is one.task} for one in dealt}
    counts = {split: sum(one.task.split == split for one in dealt) / len(dealt) for split in ("train", "valid", "test")}
    assert all(len(splits) == 1 for splits in of_task.values())
    assert counts == pytest.approx({"train": 0.7, "valid": 0.1, "test": 0.2}, abs=0.04)


def test_splits_that_the_log_names_are_kept():
    logged = [episode(f"{split} {number}", split) for split in ("train", "valid", "test") for number in range(2)]
    assert with_splits(logged, LogsRecipe()) == logged
    with pytest.raises(DataError, match="split test has 1 of the 5 logged tasks"):
        with_splits(logged[:-1], LogsRecipe())


@given(st.sets(st.text(max_size=8), min_size=6, max_size=40))
def test_a_drafted_recipe_leaves_two_tasks_or_more_to_each_split(tasks):
    logged = [episode(task) for task in sorted(tasks)]
    dealt = with_splits(logged, LogsRecipe(**held_out_shares(logged)))
    assert len(dealt) == len(tasks)


def test_a_recipe_of_too_few_logged_tasks_is_not_drafted():
    with pytest.raises(DataError, match="and 5 are logged: log more tasks"):
        held_out_shares([episode(f"task {number}") for number in range(5)] * 3)
    with pytest.raises(DataError, match="split valid has 1 of the 6 logged tasks"):
        held_out_shares([episode(f"task {number}", "train" if number else "valid") for number in range(6)])


def test_the_usual_shares_are_left_out_where_they_do():
    assert held_out_shares([episode(f"task {number}") for number in range(100)]) == {}


@pytest.mark.parametrize(("valid", "test"), [(0.0, 0.2), (0.5, 0.5), (0.1, 0.0)])
def test_something_is_held_out_and_something_is_left(valid, test):
    with pytest.raises(ValueError, match="together below 1"):
        LogsRecipe(valid_share=valid, test_share=test)


def test_logs_can_be_checked_and_not_played():
    logged = LoggedEnvironment()
    task = AgentTask("1", "cancel order W0042 of user_7 by 2026, please", "train", "logged", 0, "- line 1: a 7b B7x")
    assert logged.names(task) == ["B7x", "W0042"], "codes of three signs; no plain word, no number"
    assert logged.task_error(task) is None
    assert "state" in (logged.task_error(AgentTask("1", "cancel", "train", "logged")) or "")
    for refused in (lambda: logged.tasks("train", 1), lambda: logged.reset({0: task}), lambda: logged.expert(0)):
        with pytest.raises(InputError, match="no real environment"):
            refused()
