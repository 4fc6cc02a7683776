from dataclasses import replace

import pytest

from models.curriculum import draw_tasks, reward_entropy, tasks_to_vary
from models.gate import GateOptions, judge, judge_succession
from models.intervals import bootstrap_mean, mean_over_seeds, paired_gain, success_rate
from schemas.records import AgentTask

OPTIONS = GateOptions(
    margin=0.0,
    champion_margin=0.02,
    family_margin=0.05,
    family_margins={"fragile": 0.0},
    min_outcome_agreement=0.9,
    max_dream_real_gap=0.1,
)


def verdict(candidate, baseline, agreement=0.95, gap=0.02, families=None, options=OPTIONS):
    ids = [str(i) for i in range(len(candidate))]
    families = families or dict.fromkeys(ids, "f")
    return judge(
        dict(zip(ids, candidate, strict=True)), dict(zip(ids, baseline, strict=True)), families, agreement, gap, options
    )


def test_a_clear_gain_passes():
    result = verdict([1] * 80 + [0] * 20, [1] * 50 + [0] * 50)
    assert result.passed
    assert result.gain.mean == pytest.approx(0.3)


def test_an_uncertain_gain_is_refused():
    uncertain = verdict([1, 0, 1, 0, 1], [1, 0, 0, 0, 1])
    assert "may be as low" in uncertain.reasons[0]
    assert uncertain.calibrated, "which is another matter"
    assert verdict([1, 0, 1, 0, 1], [1, 0, 0, 0, 1], options=replace(OPTIONS, margin=0.5)).passed


def test_a_family_that_loses_is_named():
    families = {str(i): "hard" if i >= 90 else "easy" for i in range(100)}
    result = verdict([1] * 90 + [0] * 10, [0] * 90 + [1] * 10, families=families)
    assert not result.passed
    assert result.reasons == ["family hard lost 100.0%, more than 5.0%"]


def test_each_family_is_told_with_its_own_interval():
    families = {str(i): "hard" if i >= 60 else "easy" for i in range(100)}
    found = verdict([1] * 70 + [0] * 30, [1] * 30 + [0] * 30 + [1, 0] * 20, families=families).families
    assert {name: one.num_tasks for name, one in found.items()} == {"easy": 60, "hard": 40}
    assert (found["easy"].baseline, found["easy"].candidate) == (0.5, 1.0)
    assert (found["hard"].baseline, found["hard"].candidate) == (0.5, 0.25)
    assert found["easy"].gain.low > 0.3
    # differences of the hard ones: +1 five times, -1 fifteen times, 0 twenty times: mean -0.25, sd 0.66
    assert found["hard"].gain.mean == -0.25
    assert found["hard"].gain.low == pytest.approx(-0.25 - 1.96 * 0.661 / 40**0.5, abs=0.03)


@pytest.mark.parametrize(("agreement", "gap"), [(0.8, 0.0), (0.95, 0.2), (0.95, -0.2)])
def test_a_dream_that_disagrees_with_reality_is_refused(agreement, gap):
    doubtful = verdict([1] * 80 + [0] * 20, [1] * 50 + [0] * 50, agreement, gap)
    assert (doubtful.passed, doubtful.calibrated) == (False, False)


def test_other_tasks_cannot_be_compared():
    with pytest.raises(ValueError, match="same tasks"):
        judge({"a": True}, {"b": True}, {"a": "f"}, 1, 0, OPTIONS)


def succession(candidate, champion, family="f"):
    ids = [str(i) for i in range(len(candidate))]
    return judge_succession(
        dict(zip(ids, candidate, strict=True)),
        dict(zip(ids, champion, strict=True)),
        dict.fromkeys(ids, family),
        OPTIONS,
    )


def test_an_equal_may_succeed_a_champion_and_one_who_may_be_worse_may_not():
    assert succession([1] * 90 + [0] * 10, [1] * 90 + [0] * 10).passed, "within the margin, though it is no gain"
    # 8 won and 10 lost of 100: the mean is -0.02 and its lower bound lies below the margin of 2 points
    worse = succession([1] * 8 + [0] * 10 + [1] * 82, [0] * 8 + [1] * 10 + [1] * 82)
    assert "which is not above -2.0%" in worse.reasons[0]


def test_a_family_may_have_a_margin_of_its_own():
    candidate, champion = [1] * 999 + [0], [1] * 1000
    assert succession(candidate, champion).passed
    assert succession(candidate, champion, "fragile").reasons == ["family fragile lost 0.1%, more than 0.0%"]


def test_interval_of_a_coin():
    interval = bootstrap_mean([1.0, 0.0] * 200)
    assert interval.mean == 0.5
    # normal approximation: 1.96 * 0.5 / sqrt(400) = 0.049
    assert interval.low == pytest.approx(0.451, abs=0.01)
    assert interval.high == pytest.approx(0.549, abs=0.01)


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


def test_success_of_several_episodes_a_task_is_resampled_by_task():
    # sd over tasks 0.25: 1.96 * 0.25 / sqrt(400) = 0.0245
    interval = success_rate([0.25, 0.75] * 200)
    assert (interval.mean, interval.low, interval.high) == pytest.approx((0.5, 0.4755, 0.5245), abs=2e-3)


def test_a_paired_gain_is_surer_than_two_intervals():
    candidate, start = [1.0] * 60 + [0.0] * 40, [1.0] * 50 + [0.0] * 50
    assert paired_gain(candidate, start).low > 0


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
    entropies = {"edge": 0.25, "solved": 0.0, "lost": 0.0}
    drawn = [draw_tasks(tasks, entropies, 1, 0.0, 0.05, rng)[0].task_id for _ in range(3000)]
    # weights 0.25, 0.05, 0.05
    assert drawn.count("edge") / 3000 == pytest.approx(0.25 / 0.35, abs=0.03)
    assert drawn.count("lost") > 300


def test_generated_tasks_are_bounded_by_lambda():
    import random

    tasks = [task(f"g{i}", parent="o0") for i in range(20)] + [task(f"o{i}") for i in range(20)]
    drawn = draw_tasks(tasks, {}, 8, 0.25, 0.05, random.Random(1))
    assert len(drawn) == 8
    assert sum(t.generated for t in drawn) == 2


def test_only_original_tasks_with_entropy_are_varied():
    tasks = [task("a"), task("b"), task("c", parent="a")]
    assert [t.task_id for t in tasks_to_vary(tasks, {"a": 0.0, "b": 0.2, "c": 0.25}, 5)] == ["b"]
