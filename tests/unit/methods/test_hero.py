"""The hybrid reward by hand, and what progress is in a cooking game."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from infra.environments.by_name import open_environment, progress_of
from models.methods.advantages.grpo import group_advantages
from models.methods.rewards.hero import Hero, HeroOptions
from models.methods.scoring import Scoring
from schemas.errors import RecipeError
from schemas.records import AgentTask, Step, Tokens, Trajectory, Turn

TASK = AgentTask("one/train/0", "recipe: carrot roasted sliced; red apple raw uncut", "train", "one")
PROGRESS = progress_of(load_recipe("textworld-tiny").environment)
STATES = (
    ("- you: kitchen\n- carrot: fridge raw uncut\n- red apple: table raw uncut", 2 / 7),
    ("- you: kitchen\n- carrot: held roasted uncut\n- red apple: table raw uncut", 4 / 7),
    ("- you: kitchen\n- carrot: held fried sliced\n- red apple: held raw uncut", 5 / 7),
    ("- you: kitchen\n- carrot: meal roasted sliced\n- red apple: meal raw uncut", 1.0),
    ("nonsense", 0.0),
)


def episode(state: str, success: bool) -> Trajectory:
    turns = [Turn("- you: hall", "go north", Step(STATES[0][0], 0.0, False, False))]
    turns += [Turn(STATES[0][0], "cook", Step(state, float(success), True, success))]
    streams = [Tokens([1, 2], [False, True], [0.0, -1.0]) for _ in turns]
    return Trajectory(TASK, "dream", turns, tuple(streams), group_id="g")


def test_worths_by_hand():
    worths = Hero(HeroOptions()).worths([False, False, True, True], [2, 4, 1, 5])
    assert worths == pytest.approx([-0.1, 0.1, 0.9, 1.1], abs=1e-6)
    assert Hero(HeroOptions(lost_spread=0.05, won_spread=0)).worths([False, True, False], [1, 9, 2]) == pytest.approx(
        [-0.05, 1, 0.05], abs=1e-6
    )
    assert Hero(HeroOptions()).worths([True, True], [3, 3]) == [1, 1], "equals stay equal"


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=12))
def test_no_lost_episode_is_worth_as_much_as_a_won_one(episodes):
    outcomes, progress = map(list, zip(*episodes, strict=True))
    worths = Hero(HeroOptions(lost_spread=0.49, won_spread=0.49)).worths(outcomes, progress)
    lost, won = (
        [worth for worth, one in zip(worths, outcomes, strict=True) if one is which] for which in (False, True)
    )
    assert max(lost, default=0) < min(won, default=1)


@pytest.mark.parametrize(("state", "share"), STATES)
def test_progress_by_hand(state, share):
    assert PROGRESS.score(TASK, state) == pytest.approx(share)


def test_an_expert_makes_progress_until_all_is_done():
    environment = open_environment(load_recipe("textworld-small").environment)
    tasks = environment.tasks("train", 4)
    states = environment.reset(dict(enumerate(tasks)))
    for slot, task in enumerate(tasks):
        scores = [PROGRESS.score(task, states[slot])]
        done = False
        while not done:
            step = environment.step({slot: environment.expert(slot)})[slot]
            scores.append(PROGRESS.score(task, step.state))
            done = step.done
        assert scores == sorted(scores)
        assert scores[0] < scores[-1] == 1


def test_a_lost_group_teaches_which_episode_came_furthest():
    recipe = load_recipe("textworld-tiny", ["rl.reward.name=hero"]).rl
    lost = [episode(STATES[0][0], False), episode(STATES[2][0], False)]
    [group], counts = Scoring.of(recipe, PROGRESS).informative_groups(lost)
    assert group.returns == pytest.approx([-0.1, 0.1], abs=1e-6)
    assert group.streams[0].advantages[0] < 0 < group.streams[-1].advantages[0]
    assert counts["all_failed"] == 0
    assert group_advantages(group.returns)[1] > 0


def test_an_environment_that_does_not_tell_is_refused():
    with pytest.raises(RecipeError, match=r"rl\.reward 'hero' needs states that tell how far they are.*'alfworld'"):
        require_methods(load_recipe("alfworld-tiny", ["rl.reward.name=hero"]))
    require_methods(load_recipe("textworld-tiny", ["rl.reward.name=hero"]))
