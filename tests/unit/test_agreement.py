"""Agreement of dreams with replays beyond chance."""

import numpy as np
import pytest

from models.measurement.agreement import Outcomes


def test_kappa_precision_and_recall_by_hand():
    # of 50: agreement 35/50; by chance 25/50 * 30/50 + 25/50 * 20/50 = 0.5; kappa (0.7 - 0.5) / 0.5
    found = Outcomes(both_won=20, only_dreamt_won=5, only_real_won=10, both_lost=15)
    assert found.agreement == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert (found.win_precision, found.win_recall) == (pytest.approx(20 / 25), pytest.approx(20 / 30))


def test_pairs_are_counted():
    pairs = [(True, True), (True, False), (False, True), (False, True), (False, False)]
    assert Outcomes.count(pairs) == Outcomes(1, 1, 2, 1)


def test_kappa_where_there_is_only_one_outcome():
    assert Outcomes(40, 0, 0, 0).kappa == Outcomes(0, 0, 0, 40).kappa == 1, "all agree"
    assert Outcomes(39, 1, 0, 0).kappa == 0, "no loss was dreamt"
    assert Outcomes(0, 7, 0, 0).kappa == 0
    nothing = Outcomes(0, 0, 0, 0)
    assert (nothing.agreement, nothing.win_precision, nothing.win_recall) == (0, None, None)


def independent(chance: float, count: int) -> Outcomes:
    """Return the outcomes of two coins, as often in each cell as expected."""
    shares = (chance**2, chance * (1 - chance), chance * (1 - chance), (1 - chance) ** 2)
    return Outcomes(*(round(count * share) for share in shares))


@pytest.mark.parametrize("chance", [0.03, 0.1, 0.5, 0.9])
def test_coins_agree_by_chance_only(chance):
    assert independent(chance, 400).kappa_high < 0.4


def test_coins_that_seldom_win_are_nearly_always_found_out():
    random = np.random.default_rng(0)
    tosses = random.random((200, 2, 400)) < 0.03
    found = [Outcomes.count(zip(dream.tolist(), real.tolist(), strict=True)) for dream, real in tosses]
    assert np.mean([one.agreement >= 0.9 for one in found]) > 0.95
    assert np.mean([one.kappa_high < 0.4 for one in found]) > 0.95


@pytest.mark.parametrize("success", [0.75, 0.9, 0.99])
def test_dreams_that_hold_are_believed_even_if_few_lose(success):
    won = round(400 * success)
    assert Outcomes(won, 0, 0, 400 - won).kappa_high > 0.9
    assert Outcomes(won - 2, 2, 2, 396 - won).kappa_high > 0.4, "99 of 100 agree"
    assert Outcomes(396, 4, 0, 0).kappa_high > 0.4, "four losses are too few to say that it knows none"
