"""Gate: what passes, what is refused and why, by hand and for any outcomes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.planning.load_recipe import load_recipe
from models.measurement.gate import judge, judge_succession
from schemas.errors import RecipeError
from schemas.recipes.judging import GateRecipe
from tests.command_line import LENIENT_GATE
from tests.simulated import PERFECT

ASKED = GateRecipe(family_margins={"fragile": 0.0})

outcomes = st.lists(st.tuples(*[st.sampled_from([0, 1 / 3, 2 / 3, 1])] * 2, st.sampled_from("fgh")), min_size=1)


def named(values) -> dict:
    return {str(number): value for number, value in enumerate(values)}


def verdict(candidate, start, families=None, dreams=PERFECT, asked=ASKED):
    return judge(named(candidate), named(start), families or dict.fromkeys(named(candidate), "f"), dreams, asked)


def succession(candidate, champion, family="f", asked=ASKED):
    return judge_succession(named(candidate), named(champion), dict.fromkeys(named(candidate), family), asked)


def test_a_clear_gain_passes():
    result = verdict([1] * 80 + [0] * 20, [1] * 50 + [0] * 50)
    assert result.passed
    assert result.gain.mean == pytest.approx(0.3)


def test_an_uncertain_gain_is_refused():
    uncertain = verdict([1, 0, 1, 0, 1], [1, 0, 0, 0, 1])
    assert "may be as low" in uncertain.reasons[0]
    assert uncertain.calibrated, "which is another matter"
    assert verdict([1, 0, 1, 0, 1], [1, 0, 0, 0, 1], asked=ASKED.model_copy(update={"margin": 0.5})).passed


def test_a_family_that_surely_loses_is_named():
    families = named(["easy"] * 90 + ["hard"] * 10)
    result = verdict([1] * 90 + [0] * 10, [0] * 90 + [1] * 10, families)
    # all ten lost: 1 of 1024 patterns of signs, below 0.05 / 2
    assert result.reasons == ["family hard lost 100.0%, beyond chance more than 5.0%"]


def test_a_family_may_lose_by_chance():
    families = named(["easy"] * 90 + ["hard"] * 10)
    # 3 of 10 lost: were 5% all, signs of 0.95, 0.95, 0.95, -0.05 seven times: at least 1/8 of patterns are as bad
    assert verdict([1] * 90 + [0] * 3 + [1] * 7, [0] * 90 + [1] * 10, families).passed


def test_families_too_small_to_show_a_loss_are_named_and_let_through():
    families = named(["easy"] * 90 + ["few"] * 5 + ["never won"] * 5)
    result = verdict([1] * 90 + [0] * 10, [0] * 90 + [1] * 5 + [0] * 5, families)
    # five lost of five: 1/32, above 0.05 / 3; where nothing was won nothing can be lost
    assert result.passed
    assert result.unseen_families == ["few"]


def test_each_family_is_told_with_its_own_interval():
    families = named(["easy"] * 60 + ["hard"] * 40)
    found = verdict([1] * 70 + [0] * 30, [1] * 30 + [0] * 30 + [1, 0] * 20, families).families
    assert {name: one.num_tasks for name, one in found.items()} == {"easy": 60, "hard": 40}
    assert (found["easy"].baseline, found["easy"].candidate) == (0.5, 1.0)
    assert (found["hard"].baseline, found["hard"].candidate) == (0.5, 0.25)
    # differences of the hard ones: +1 five times, -1 fifteen times, 0 twenty times: sd 0.6699, t(0.975, 39) = 2.0227
    assert found["hard"].gain.mean == -0.25
    assert found["hard"].gain.low == pytest.approx(-0.25 - 2.0227 * 0.6699 / 40**0.5, abs=1e-4)


@pytest.mark.parametrize("doubt", [{"outcome_agreement": 0.8}, {"dream_real_gap": 0.2}, {"dream_real_gap": -0.2}])
def test_a_dream_that_disagrees_with_reality_is_refused(doubt):
    doubtful = verdict([1] * 80 + [0] * 20, [1] * 50 + [0] * 50, dreams=replace(PERFECT, **doubt))
    assert (doubtful.passed, doubtful.calibrated) == (False, False)


def test_a_dream_that_agrees_by_chance_is_refused():
    coins = replace(PERFECT, outcome_agreement=0.94, outcome_kappa_high=0.1)
    assert "kappa is at most 0.10, below 0.40" in verdict([1] * 80 + [0] * 20, [0] * 100, dreams=coins).reasons[0]


def test_other_tasks_cannot_be_compared():
    with pytest.raises(ValueError, match="same tasks"):
        judge({"a": 1}, {"b": 1}, {"a": "f"}, PERFECT, ASKED)


def test_only_a_better_one_succeeds_a_champion():
    assert not succession([1] * 90 + [0] * 10, [1] * 90 + [0] * 10).passed
    # 9 won and none lost: 1/512 is below 0.35%; 8: 1/256 is above
    assert succession([1] * 9 + [0] * 91, [0] * 100).passed
    lucky = succession([1] * 8 + [0] * 92, [0] * 100)
    assert lucky.chance == pytest.approx(1 / 256)
    assert lucky.reasons == [
        "real gain +8.0% may be luck: an equal policy shows as much in 0.39% of judgements, and 0.35% are allowed"
    ]


def test_a_family_may_have_a_margin_of_its_own():
    candidate, champion = [1] * 20 + [0] * 8 + [1] * 172, [0] * 20 + [1] * 180
    asked = ASKED.model_copy(update={"false_promotion_rate": 1.0})
    assert succession(candidate, champion, asked=asked).passed
    worse = succession(champion, candidate, "fragile", asked)
    # net 12 of 28 changed tasks lost: beyond chance more than nothing; not more than 5% of 200
    assert worse.reasons == ["family fragile lost 6.0%, beyond chance more than 0.0%"]
    assert succession(champion, candidate, asked=asked).passed


@given(outcomes, st.sampled_from([0.0, -1.0, 1.0]))
def test_the_lenient_gate_lets_everything_through(told, gap):
    asked = load_recipe("textworld-tiny", LENIENT_GATE).gate
    candidate, rival, families = zip(*told, strict=True)
    dreams = replace(PERFECT, outcome_agreement=0, outcome_kappa_high=-1, dream_real_gap=gap)
    assert verdict(candidate, rival, named(families), dreams, asked).passed
    assert judge_succession(named(candidate), named(rival), named(families), asked).passed


@given(outcomes, st.randoms())
def test_names_of_tasks_change_nothing(told, random):
    renamed = random.sample(told, len(told))
    first, second = (
        judge_succession(*(named(column) for column in zip(*one, strict=True)), ASKED) for one in (told, renamed)
    )
    assert (first.passed, first.chance, first.unseen_families) == (second.passed, second.chance, second.unseen_families)
    assert first.gain.low == pytest.approx(second.gain.low)


@given(st.integers(9, 60), st.sampled_from([1 / 3, 2 / 3, 1]))
def test_a_gain_on_every_task_passes_and_on_none_never(count, gain):
    assert verdict([gain] * count, [0] * count).passed
    assert succession([gain] * count, [0] * count).passed
    assert not verdict([gain] * count, [gain] * count).passed
    assert not succession([gain] * count, [gain] * count).passed


def test_the_margin_over_a_champion_is_refused_by_its_new_name():
    with pytest.raises(RecipeError, match=r"champion_margin is replaced by gate\.false_promotion_rate"):
        load_recipe("textworld-tiny", ["gate.champion_margin=0.01"])
