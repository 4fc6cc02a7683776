"""Intervals, reward entropy and the curriculum's draws, by hand."""

import pytest
from scipy.stats import ttest_rel

from models.measurement.intervals import Interval, mean_over_seeds, paired_gain, success_rate
from models.methods.curricula import tasks_to_vary
from models.methods.curricula.reward_entropy import RewardEntropy, RewardEntropyOptions
from models.methods.entropies import reward_entropy
from schemas.records import AgentTask


def test_an_interval_over_seeds_by_hand():
    # sd 1, standard error 1/sqrt(3), t(0.975, 2) = 4.30265
    interval = mean_over_seeds([1.0, 2.0, 3.0])
    assert (interval.mean, interval.low, interval.high) == pytest.approx((2.0, -0.48414, 4.48414), abs=1e-5)
    with pytest.raises(ValueError, match="at least two"):
        mean_over_seeds([1.0])


def test_wilson_intervals_by_hand():
    # all of n: low = n / (n + z^2) = 400 / 403.8415
    assert success_rate([True] * 400).low == pytest.approx(0.99049, abs=1e-5)
    # 1 of 2: centre 1/2, half width z sqrt(1/8 + z^2/16) / (1 + z^2/2) = 0.40547
    interval = success_rate([True, False])
    assert (interval.mean, interval.low, interval.high) == pytest.approx((0.5, 0.09453, 0.90547), abs=1e-5)
    with pytest.raises(ValueError, match="n"):
        success_rate([])


def test_success_of_several_episodes_a_task_varies_by_task():
    # sd over tasks 0.25: 1.966 * 0.2503 / sqrt(400) = 0.0246
    interval = success_rate([0.25, 0.75] * 200)
    assert (interval.mean, interval.low, interval.high) == pytest.approx((0.5, 0.4754, 0.5246), abs=1e-4)


def test_a_paired_gain_is_surer_than_two_intervals():
    candidate, start = [1.0] * 60 + [0.0] * 40, [1.0] * 50 + [0.0] * 50
    assert paired_gain(candidate, start).low > 0


def test_a_paired_gain_is_students_and_within_what_a_gain_can_be():
    found = paired_gain([1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0])
    # differences 1, 0, 0, 1: sd 0.57735, standard error 0.288675, t(0.975, 3) = 3.18245
    assert (found.mean, found.low, found.high) == pytest.approx((0.5, 0.5 - 0.91869, 1.0), abs=1e-5)
    theirs = ttest_rel([1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.0]).confidence_interval()
    assert found.low == pytest.approx(theirs.low)
    assert paired_gain([1.0], [0.5]) == Interval(0.5, -1, 1), "one task says nothing of others"
    with pytest.raises(ValueError, match="at least one"):
        paired_gain([], [])


def test_reward_entropy_by_hand():
    assert reward_entropy([1, 1, 0, 0]) == 0.25
    assert reward_entropy([1, 0, 0, 0]) == 0.1875
    assert reward_entropy([1, 1, 1, 1]) == 0


def task(name, parent=""):
    return AgentTask(name, "i", "train", "f", parent_id=parent)


def test_tasks_at_the_edge_are_drawn_more_often_and_none_is_forgotten():
    import random

    tasks = [task("edge"), task("solved"), task("lost")]
    rng = random.Random(0)
    curriculum = RewardEntropy(RewardEntropyOptions())
    curriculum.restore({"entropies": {"edge": 0.25, "solved": 0.0, "lost": 0.0}})
    drawn = [curriculum.draw(tasks, 1, 0, rng)[0].task_id for _ in range(3000)]
    # weights 0.25, 0.05, 0.05
    assert drawn.count("edge") / 3000 == pytest.approx(0.25 / 0.35, abs=0.03)
    assert drawn.count("lost") > 300


def test_generated_tasks_are_bounded_by_lambda():
    import random

    tasks = [task(f"g{i}", parent="o0") for i in range(20)] + [task(f"o{i}") for i in range(20)]
    drawn = RewardEntropy(RewardEntropyOptions()).draw(tasks, 8, 2, random.Random(1))
    assert len(drawn) == 8
    assert sum(t.generated for t in drawn) == 2


def test_only_original_tasks_with_entropy_are_varied():
    tasks = [task("a"), task("b"), task("c", parent="a")]
    entropies = {"a": 0.0, "b": 0.2, "c": 0.25}
    assert [t.task_id for t in tasks_to_vary(tasks, entropies, 5)] == ["b"]
    assert [t.task_id for t in tasks_to_vary(tasks, entropies, 5, generated=True)] == ["c", "b"]


def test_lambda_can_be_a_bound_instead_of_a_quota():
    import random

    tasks = [task(f"g{i}", parent="o0") for i in range(20)] + [task(f"o{i}") for i in range(20)]
    taught_out = {"entropies": {one.task_id: 0.0 for one in tasks if one.generated}}

    def num_generated(**options) -> list[int]:
        curriculum = RewardEntropy(RewardEntropyOptions(**options))
        curriculum.restore(taught_out)
        drawn = [curriculum.draw(tasks, 8, 4, random.Random(seed)) for seed in range(200)]
        assert all(len(one) == 8 for one in drawn)
        return [sum(t.generated for t in one) for one in drawn]

    assert set(num_generated()) == {4}
    bounded = num_generated(fill_generated=False)
    assert max(bounded) <= 4
    # of 20 weights of 0.05 and 20 of 0.25, eight are drawn: fewer than the 8 / 6 of a draw with replacement are generated
    assert 0.9 < sum(bounded) / 200 < 8 / 6 + 0.4
