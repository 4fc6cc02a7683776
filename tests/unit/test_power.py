"""Power of the gate: against simulated nights, and the advice that is given."""

from statistics import fmean

import numpy as np
import pytest

from models.measurement.gate import judge, judge_succession
from models.measurement.power import advice, power
from schemas.recipes.judging import GateRecipe
from tests.simulated import PERFECT, TestTasks, by_task

ASKED = GateRecipe()


def passes(random, tasks: TestTasks, chances, gain: float) -> bool:
    candidate, start, champion = (
        by_task(tasks.played(random, one)) for one in (tasks.gained(chances, gain), chances, chances)
    )
    families = tasks.family_of
    over_start = judge(candidate, start, families, PERFECT, ASKED)
    return over_start.passed and judge_succession(candidate, champion, families, ASKED).passed


@pytest.mark.parametrize(
    ("num_tasks", "episodes", "start", "gain"), [(140, 3, 0.28, 0.1), (400, 1, 0.75, 0.05), (240, 1, 0.68, 0.1)]
)
def test_power_is_what_simulated_nights_show(num_tasks, episodes, start, gain):
    random, tasks = np.random.default_rng(0), TestTasks(num_tasks, episodes, ("f",), start, fresh=True)
    shown = fmean(passes(random, tasks, chances, gain) for chances in tasks.chances(random, 300))
    refusals = power(num_tasks, episodes, 0.4, start, gain, ASKED)
    assert refusals == pytest.approx(shown, abs=0.08)


def test_a_greedy_policys_further_episodes_say_nothing():
    assert power(140, 5, 0.0, 0.4, 0.1, ASKED) == power(140, 1, 0.0, 0.4, 0.1, ASKED)
    assert power(140, 5, 0.4, 0.4, 0.1, ASKED) > 0.9 > power(140, 1, 0.4, 0.4, 0.1, ASKED)


def test_advice_names_the_least_that_reaches_the_power():
    found = advice(140, 1, 0.0, 0.4, 0.1, ASKED)
    assert found.sentence == (
        "with 140 tasks a gain of 10 points passes 24% of the time; for 80% play each task 3 times at temperature 0.4, "
        "or 390 tasks"
    )
    assert found.power == power(140, 1, 0.0, 0.4, 0.1, ASKED)
    assert power(140, 3, 0.4, 0.4, 0.1, ASKED) >= 0.8 > power(140, 2, 0.4, 0.4, 0.1, ASKED)
    assert power(390, 1, 0.0, 0.4, 0.1, ASKED) >= 0.8 > power(380, 1, 0.0, 0.4, 0.1, ASKED)


def test_who_sees_enough_is_advised_nothing():
    assert advice(140, 4, 0.4, 0.4, 0.1, ASKED).sentence == (
        "with 140 tasks, each played 4 times, a gain of 10 points passes 94% of the time"
    )


def test_what_no_number_of_episodes_shows_is_not_suggested():
    assert advice(10, 1, 0.4, 0.4, 0.01, ASKED).episodes_per_task is None


def test_nothing_to_gain_is_said_to_be_so():
    with pytest.raises(ValueError, match=r"a start of 95.0% leaves no gain of 10.0%"):
        power(100, 1, 0.4, 0.95, 0.1, ASKED)
    assert power(100, 1, 0.4, 0.9, 0.1, ASKED) > 0
    assert power(5, 1, 0.4, 0.4, 0.3, ASKED) == 0, "five tasks can never be rarer than 1 in 32"


def test_a_start_that_wins_nothing_is_judged_by_its_gain_alone():
    limit = power(80, 1, 0.0, 1e-4, 0.1, GateRecipe())
    assert power(80, 1, 0.0, 0.0, 0.1, GateRecipe()) == pytest.approx(limit, abs=0.01)
