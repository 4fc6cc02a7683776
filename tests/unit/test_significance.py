"""Sign flips and Holm's correction: by hand, against scipy, and for what must hold of any differences."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test, ttest_1samp

from models.measurement.significance import holm, sign_flip

shares = st.integers(-6, 6).map(lambda sixths: sixths / 6)


def test_sign_flips_by_hand():
    # of 8 sign patterns of (1, 1, 1) only one sums to 3, and four sum to 1 or more
    assert sign_flip([1, 1, 1]) == pytest.approx(1 / 8)
    assert sign_flip([1, 1, -1]) == pytest.approx(4 / 8)
    assert sign_flip([-1, -1, 1]) == pytest.approx(7 / 8)
    assert sign_flip([-1, -1, -1]) == pytest.approx(1)
    # +-1 +-1/2 +-1/2 reaches 1 by +1 with any but two minus signs: 3 of 8; unchanged tasks say nothing
    assert sign_flip([1, 0.5, -0.5, 0, 0]) == pytest.approx(3 / 8)


def test_equal_policies_show_nothing():
    assert sign_flip([0.0] * 50) == 1
    assert sign_flip([]) == 1


def test_wins_and_losses_are_mcnemars_exact_test():
    for won, lost in ((9, 0), (30, 12), (12, 30), (140, 100)):
        ours = sign_flip([1] * won + [-1] * lost + [0] * 100)
        assert ours == pytest.approx(binomtest(won, won + lost, alternative="greater").pvalue, abs=1e-12)


@given(st.lists(shares, min_size=1, max_size=9))
def test_every_pattern_of_signs_counts_once(differences):
    exact = [Fraction(d).limit_denominator(6) for d in differences]
    patterns = list(product((1, -1), repeat=len(exact)))
    as_large = sum(sum(s * d for s, d in zip(signs, exact, strict=True)) >= sum(exact) for signs in patterns)
    assert sign_flip(differences) == pytest.approx(as_large / len(patterns), abs=1e-9)


@given(st.lists(shares, min_size=1, max_size=40), st.randoms())
def test_the_order_of_tasks_changes_nothing(differences, random):
    shuffled = random.sample(differences, len(differences))
    assert sign_flip(shuffled) == sign_flip(differences)


def test_parity_with_scipy():
    differences = np.random.default_rng(3).integers(-3, 4, 12) / 3 + 1 / 3
    theirs = permutation_test(
        (differences,), np.sum, permutation_type="samples", alternative="greater", n_resamples=np.inf
    )
    assert sign_flip(differences) == pytest.approx(theirs.pvalue, abs=1e-9)
    many = np.random.default_rng(4).integers(-3, 4, 600) / 3 + 0.06
    assert sign_flip(many) == pytest.approx(ttest_1samp(many, 0, alternative="greater").pvalue, rel=0.15)


def test_equal_policies_pass_no_more_often_than_is_allowed():
    random = np.random.default_rng(0)
    for num_tasks, episodes, mean in ((140, 3, 0.28), (240, 1, 0.033), (400, 1, 0.75)):
        chances = random.beta(mean, 1 - mean, (4_000, num_tasks))
        changes = (random.binomial(episodes, chances) - random.binomial(episodes, chances)) / episodes
        assert np.mean([sign_flip(one) <= 0.02 for one in changes]) <= 0.02 + 3 * (0.02 * 0.98 / 4_000) ** 0.5


def test_holms_steps_by_hand():
    # 0.01 <= 0.05/4, 0.015 <= 0.05/3, 0.03 > 0.05/2: here it stops, although 0.04 <= 0.05/1
    assert holm({"c": 0.03, "a": 0.01, "d": 0.04, "b": 0.015}, 0.05) == {"a", "b"}
    assert holm({"a": 0.0126, "b": 0.0126, "c": 0.0126, "d": 0.0126}, 0.05) == set()
    assert holm({}, 0.05) == set()


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), max_size=12))
def test_holm_is_between_bonferroni_and_no_correction(p_values):
    refuted = holm(p_values, 0.05)
    assert {name for name, p in p_values.items() if p <= 0.05 / len(p_values)} <= refuted
    assert refuted <= {name for name, p in p_values.items() if p <= 0.05}
