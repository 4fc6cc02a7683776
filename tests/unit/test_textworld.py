"""Cooking environment against TextWorld's own engine."""

import random

import pytest
from textworld.challenges.tw_cooking import cooking
from textworld.generator.game import GameOptions

from infra.environments.cooking.environment import CookingEnvironment
from infra.environments.cooking.games import make_game
from models.rollout.behaviour_policies import collect
from schemas.records import Failure
from schemas.state_text import lines_of

ONE = {"recipe": 1, "take": 1, "go": 1, "open": False, "cook": True, "cut": True}
ROOMS = {"recipe": 2, "take": 2, "go": 6, "open": True, "cook": True, "cut": True}


@pytest.fixture(scope="module")
def environment():
    return CookingEnvironment({"one": ONE, "rooms": ROOMS})


def test_the_expert_wins_every_game(environment):
    told: list[tuple[int, int]] = []
    episodes = collect(environment, environment.tasks("test", 40), [0.0], 0, 40, lambda *done: told.append(done))
    assert all(episode.success for episode in episodes)
    assert all(episode.reward == 1.0 for episode in episodes)
    assert (told[0], told[-1]) == ((0, 40), (40, 40))
    assert told == sorted(told)


@pytest.mark.parametrize("settings", [ONE, ROOMS])
def test_games_are_those_of_textworlds_own_generator(settings):
    options = GameOptions()
    options.seeds = 3
    slow = cooking.make({**settings, "drop": False, "recipe_seed": 0, "split": "test"}, options).serialize()
    ours = make_game("test", 3, tuple(settings.items())).serialize()
    del slow["quests"], ours["quests"]  # these have the walkthrough
    assert ours == slow


def test_tasks_are_the_same_again_and_split(environment):
    assert environment.tasks("train", 6) == environment.tasks("train", 6)
    train = {t.instruction for t in environment.tasks("train", 40)}
    assert not train & {t.instruction for t in environment.tasks("test", 40)}


@pytest.mark.parametrize("action", ["", "dance", "take moon from sky", "go up", "\x00", "x" * 100_000, "take carrot"])
def test_an_impossible_action_changes_nothing_and_never_raises(environment, action):
    task = environment.tasks("train", 1)[0]
    state = environment.reset({3: task})[3]
    step = environment.step({3: action})[3]
    assert (step.state, step.reward, step.done) == (state, 0.0, False)


def test_wrong_cooking_loses(environment):
    task = environment.tasks("train", 1)[0]
    environment.reset({0: task})
    name, cooking, _ = task.instruction.removeprefix("recipe: ").rsplit(" ", 2)
    environment.step({0: environment.expert(0)})
    wrong = "oven" if cooking == "fried" else "stove"
    step = environment.step({0: f"cook {name} with {wrong}"})[0]
    assert (step.done, step.success, step.reward) == (True, False, 0.0)


def test_the_state_carries_what_decides_whether_an_action_is_possible(environment):
    """Equal states allow equal actions, so the state alone says what is admissible."""
    rng = random.Random(0)
    allowed: dict[tuple[str, str], list[str]] = {}
    for task in environment.tasks("train", 12):
        state = environment.reset({0: task})[0]
        for _ in range(25):
            actions = environment.admissible_actions(0)
            assert allowed.setdefault((task.task_id, state), actions) == actions
            step = environment.step({0: rng.choice(actions)})[0]
            state = step.state
            if step.done:
                break


def test_a_closed_fridge_hides_what_is_in_it_until_it_is_opened(environment):
    task = environment.tasks("train", 2)[1]
    lines = lines_of(environment.reset({0: task})[0])
    hidden = [name for name in environment.names(task) if name not in lines]
    assert hidden, "a game of several rooms hides something"


def test_episodes_side_by_side_do_not_touch_each_other(environment):
    first, second = environment.tasks("train", 2)
    alone = environment.reset({0: first})[0]
    environment.reset({0: first, 1: second})
    for _ in range(4):
        environment.step({1: environment.expert(1)})
    assert environment.step({0: "dance"})[0].state == alone


def test_an_error_inside_the_game_ends_its_own_episode_and_no_other(environment):
    environment.reset(dict(enumerate(environment.tasks("train", 2))))
    environment._episodes[0].progression = None
    steps = environment.step({0: "go north", 1: "go north"})
    assert steps[0].failure is Failure.ENVIRONMENT
    assert "AttributeError" in steps[0].reasoning
    assert (steps[0].done, steps[0].reward, steps[1].failure) == (True, 0.0, None)


def test_a_task_of_a_log_is_checked_against_the_games_own(environment):
    from dataclasses import replace

    task = environment.tasks("train", 1)[0]
    logged = replace(task, initial_state=environment.reset({0: task})[0])
    assert environment.task_error(logged) is None
    assert "not in the recipe" in environment.task_error(replace(logged, family="soup"))
    assert "another instruction" in environment.task_error(replace(logged, instruction="recipe: eel fried diced"))
    assert "another state" in environment.task_error(replace(logged, initial_state="- you: attic"))


def test_a_generated_task_is_checked(environment):
    from dataclasses import replace

    task = environment.tasks("train", 1)[0]
    state = environment.reset({0: task})[0]
    good = replace(task, initial_state=state, parent_id=task.task_id)
    assert environment.task_error(good) is None
    assert "nothing to cook" in (
        environment.task_error(replace(good, instruction="recipe: unicorn fried sliced")) or ""
    )
    assert environment.task_error(replace(good, initial_state="nonsense")) is not None
