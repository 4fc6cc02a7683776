"""Other people's environments behind our port: Gymnasium's, and OpenEnv servers'."""

from dataclasses import replace

import gymnasium
import pytest

from infra.environments.by_name import open_environment
from infra.environments.single_games import NOT_BEGUN
from infra.environments.template import Treasures
from infra.serving.gymnasium_environment import TextEnvironment
from infra.serving.openenv import Limits, Served
from schemas.environments import PluginRecipe
from schemas.errors import EnvironmentLost, InputError
from schemas.records import Failure
from schemas.state_text import state_of
from tests.integration.dream_server import serving

pytestmark = pytest.mark.integration
TREASURES = PluginRecipe(name="treasures", families=("2",))


def in_gymnasium() -> gymnasium.Env:
    treasures = Treasures(TREASURES)
    return TextEnvironment(treasures, treasures.tasks("train", 50), max_steps=5)


gymnasium.register("Treasures-v0", in_gymnasium)
GYMNASIUM = PluginRecipe(name="gymnasium", options={"id": "Treasures-v0", "instruction": "find it"})


def served() -> Served:
    treasures = Treasures(TREASURES)
    return Served(treasures, treasures.tasks("train", 50), max_steps=5, description="treasures")


def played(environment, actions: list[str]) -> list[tuple[float, bool, Failure | None]]:
    """Rewards, ends and failures of one episode."""
    (task,) = environment.tasks("train", 1)
    environment.reset({0: task})
    steps = [environment.step({0: action})[0] for action in actions]
    return [(step.reward, step.done, step.failure) for step in steps]


def boxes(state: str) -> list[str]:
    return [word for word in ("red box", "blue box", "green box", "black box", "white box") if word in state]


def winning(environment) -> list[str]:
    (task,) = environment.tasks("train", 1)
    (state,) = environment.reset({0: task}).values()
    return [*(f"open {box}" for box in boxes(state)), "take treasure"]


def test_a_gymnasium_environment_is_won_and_lost_for_real():
    games = open_environment(GYMNASIUM)
    plan = winning(games)
    assert played(games, plan)[-1] == (1.0, True, None)
    assert played(games, [plan[0].replace("open", "break")]) == [(0.0, True, None)]
    assert played(games, ["look"] * 5)[-1] == (0.0, True, None), "cut off by its own limit"
    first, second = games.tasks("train", 2)
    assert games.reset({0: first, 1: second}) == games.reset({0: first, 1: second})
    assert games.task_error(first) is None


def test_games_on_an_openenv_server_go_on_side_by_side():
    with serving(served()) as url:
        games = open_environment(PluginRecipe(name="openenv", options={"url": url}))
        tasks = games.tasks("train", 3)
        assert [task.instruction for task in tasks] == [f"find treasure train {number}" for number in range(3)]
        games.reset(dict(enumerate(tasks)))
        games.step({0: "break nothing", 1: "look", 2: "look"})
        plan = winning(games)
        assert played(games, plan)[-1] == (1.0, True, None)
        for game in games._games.values():
            game.close()


def test_a_server_that_dies_amid_an_episode_fails_it_and_one_that_is_away_is_told():
    with serving(served()) as url:
        games = open_environment(PluginRecipe(name="openenv", options={"url": url}))
        games.reset(dict(enumerate(games.tasks("train", 1))))
    assert games.step({0: "look"})[0].failure is Failure.ENVIRONMENT
    with pytest.raises(EnvironmentLost, match=r"begins no episode"):
        games.tasks("train", 2)


def test_a_game_for_which_a_server_is_full_fails_and_no_other():
    with serving(served(), Limits(max_sessions=1)) as url:
        games = open_environment(PluginRecipe(name="openenv", options={"url": url}))
        tasks = games.tasks("train", 1) * 2
        games.reset(dict(enumerate(tasks)))
        steps = games.step({0: "look", 1: "look"})
        assert (steps[0].failure, steps[0].done) == (None, False)
        assert (steps[1].failure, steps[1].done, steps[1].state) == (Failure.ENVIRONMENT, True, NOT_BEGUN)
        assert "all 1 sessions are taken" in steps[1].reasoning


def test_tasks_of_a_log_are_looked_at_without_keeping_a_place_at_the_server():
    with serving(served(), Limits(max_sessions=1)) as url:
        games = open_environment(PluginRecipe(name="openenv", options={"url": url}))
        began = replace(games.tasks("train", 1)[0], initial_state="- x: y")
        assert [games.task_error(began) for _ in range(3)] == ["it starts in another state"] * 3


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (PluginRecipe(name="gymnasium"), "options.id and instruction"),
        (PluginRecipe(name="openenv"), "options.url"),
    ],
)
def test_what_an_adapter_is_not_told_it_asks_for(recipe, message):
    with pytest.raises(InputError, match=message):
        open_environment(recipe)


def test_without_an_expert_logs_of_ones_own_are_asked_for():
    games = open_environment(GYMNASIUM)
    games.reset(dict(enumerate(games.tasks("train", 1))))
    with pytest.raises(InputError, match=r"set ingest\.path"):
        games.expert(0)


def test_a_text_becomes_a_state_and_a_state_stays_one():
    assert state_of("You are here.\n\n A door: shut.") == "- line 1: You are here.\n- line 2: A door: shut."
    assert state_of("- you: here") == "- you: here"
    assert state_of(" \n") == "- line 1: nothing"
