"""GDPO by hand: each reward is normalised by itself, and their sum over the round."""

from dataclasses import replace
from statistics import mean, stdev

import pytest

from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from models.methods.advantages.gdpo import Gdpo, GdpoOptions
from models.methods.groupings.task import Task
from models.methods.method import NoOptions
from models.methods.rewards.outcome import Outcome
from models.methods.scoring import Scoring
from schemas.errors import RecipeError
from tests.unit.methods.test_hero import PROGRESS, STATES, episode


def test_advantages_by_hand():
    method = Gdpo(GdpoOptions(progress_weight=0.999999))
    combined = method.combined([1, 1, 0, 0], [1, 0, 0, 0])
    (whitened,) = method.over_round([[[one] for one in combined]])
    assert [one for (one,) in whitened] == pytest.approx([1.3320, 0.2061, -0.7691, -0.7691], abs=5e-4)


def test_a_reward_that_varies_little_counts_as_much_as_one_that_varies_much():
    method = Gdpo(GdpoOptions())
    assert method.combined([1, 0], [0.9, 0.1]) == pytest.approx(method.combined([1, 0], [0.51, 0.5]), rel=2e-2)


def test_a_round_is_whitened_as_a_whole_and_a_lost_group_trains_by_progress():
    (least, _), (middle, _), (most, _) = STATES[0], STATES[1], STATES[2]
    lost = [replace(episode(state, success=False), group_id="lost") for state in (least, middle)]
    mixed = [
        replace(episode(most, success=True), group_id="mixed"),
        replace(episode(least, success=False), group_id="mixed"),
    ]
    method = Gdpo(GdpoOptions())
    method.progress = PROGRESS
    scoring = Scoring(Task(NoOptions()), Outcome(NoOptions()), method)
    groups, counts = scoring.informative_groups([*lost, *mixed])
    assert counts == {"broken": 0, "all_succeeded": 0, "all_failed": 0}
    advantages = [[stream.advantages[0] for stream in group.streams] for group in groups]
    of_episodes = [one for group in advantages for one in (group[0], group[-1])]
    assert mean(of_episodes) == pytest.approx(0, abs=1e-6)
    assert stdev(of_episodes) == pytest.approx(1, abs=1e-3)
    assert advantages[0][0] < advantages[0][-1], "who came further did better"


def test_it_is_refused_where_states_do_not_tell_progress():
    with pytest.raises(RecipeError, match=r"rl\.advantage 'gdpo' needs states that tell how far they are"):
        require_methods(load_recipe("miniwob-tiny", ['rl.advantage={name="gdpo"}']))
    require_methods(load_recipe("textworld-tiny", ["rl.advantage.name=gdpo"]))
