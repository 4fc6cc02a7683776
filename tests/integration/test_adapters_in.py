"""External environments behind our port: Gymnasium's, and OpenEnv servers'."""

from dataclasses import replace
from threading import Thread

import gymnasium
import pytest
from websockets.sync.server import serve

from infra.environments import openenv_games
from infra.environments.by_name import open_environment
from infra.environments.single_games import NOT_BEGUN, GameEnvironment
from infra.environments.template import Treasures
from infra.serving.gymnasium_environment import TextEnvironment
from infra.serving.openenv import Limits, Served
from infra.serving.single_player import SinglePlayerEnvironment
from schemas.errors import EnvironmentUnavailable, InputError
from schemas.recipes.environments import PluginRecipe
from schemas.records import Failure
from schemas.state_text import state_of
from tests.integration.dream_server import serving

pytestmark = pytest.mark.integration
TREASURES = PluginRecipe(name="treasures", families=("2",))


def in_gymnasium() -> gymnasium.Env:
    treasures = Treasures(TREASURES)
    return TextEnvironment(SinglePlayerEnvironment(treasures, treasures.tasks("train", 50), max_steps=5))


class Told(gymnasium.Env):
    """Environment that shows its seed, and ends as the action says: `terminated 0.5`, say."""

    observation_space = action_space = gymnasium.spaces.Text(99)

    def __init__(self, *, in_a_list: bool = False) -> None:
        self._in_a_list = in_a_list

    def reset(self, *, seed=None, options=None):
        return [seed] if self._in_a_list else str(seed), {}

    def step(self, action):
        end, _, reward = action.partition(" ")
        return "over", float(reward), end == "terminated", end == "truncated", {}


gymnasium.register("Told-v0", Told, disable_env_checker=True)
gymnasium.register("Treasures-v0", in_gymnasium)
GYMNASIUM = PluginRecipe(name="gymnasium", options={"id": "Treasures-v0", "instruction": "find it"})


def served() -> Served:
    treasures = Treasures(TREASURES)
    return Served(treasures, treasures.tasks("train", 50), max_steps=5, description="treasures")


def played(environment, actions: list[str]) -> list[tuple[float, bool, Failure | None]]:
    """Return the rewards, ends and failures of one episode."""
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


def told(**options: object) -> GameEnvironment:
    return open_environment(
        PluginRecipe(name="gymnasium", options={"id": "Told-v0", "instruction": "do as told", **options})
    )


def test_only_a_full_reward_at_an_end_of_its_own_is_a_success():
    assert [played(told(), [end])[0][:2] for end in ("terminated 1", "terminated 0.5", "truncated 1", "on 1")] == [
        (1.0, True),
        (0.0, True),
        (0.0, True),
        (0.0, False),
    ]
    assert played(told(success_reward=0.5), ["terminated 0.5"]) == [(1.0, True, None)]


@pytest.mark.parametrize("end", ["terminated nan", "truncated nan", "terminated inf", "terminated -inf"])
def test_an_end_whose_reward_is_no_finite_number_is_a_failure_and_no_loss(end):
    assert played(told(), [end]) == [(0.0, True, Failure.ENVIRONMENT)]


def test_splits_are_ranges_of_seeds():
    games = told()
    began = [games.reset({0: task})[0] for split in ("train", "valid", "test") for task in games.tasks(split, 2)]
    assert began == [f"- line 1: {first + n}" for first in (0, 1_000_000_000, 1_500_000_000) for n in (0, 1)]


def test_what_gymnasium_does_not_know_and_what_is_no_text_is_said_at_once():
    with pytest.raises(InputError, match=r"environment\.options\.id: Environment `NoSuch` doesn't exist"):
        told(id="NoSuch-v0").tasks("train", 1)
    with pytest.raises(InputError, match="Told-v0 observes list, not text"):
        told(kwargs={"in_a_list": True}).tasks("train", 1)


@pytest.fixture
def games():
    """Yield an environment whose games run on an OpenEnv server."""
    with serving(served()) as url:
        environment = open_environment(PluginRecipe(name="openenv", options={"url": url}))
        yield environment
        for game in environment._games.values():
            game.close()


def test_games_on_an_openenv_server_go_on_side_by_side(games):
    tasks = games.tasks("train", 3)
    assert [task.instruction for task in tasks] == [f"find treasure train {number}" for number in range(3)]
    states = games.reset(dict(enumerate(tasks)))
    for slot in (2, 0, 1):
        (step,) = games.step({slot: f"open {boxes(states[slot])[0]}"}).values()
        changed = {place: line for place, line in enumerate(step.state.splitlines()) if line not in states[slot]}
        assert len(changed) == 1, "its own box, and in its own game"
    plan = winning(games)
    assert played(games, plan)[-1] == (1.0, True, None)
    assert games.step({2: "look"})[2].failure is None


def test_what_a_server_grants_is_a_success_from_a_reward_on(games):
    dear = open_environment(PluginRecipe(name="openenv", options={**games._options, "success_reward": 2}))
    assert played(dear, winning(games))[-1] == (0.0, True, None)
    dear._games[0].close()


def test_a_server_that_calls_things_otherwise_is_told_and_keeps_no_place_for_us():
    with serving(served(), Limits(max_sessions=1)) as url:
        for _ in range(2):
            with pytest.raises(InputError, match=r"has no 'goal', but .*instruction.*: say in .*options\.instruction"):
                open_environment(PluginRecipe(name="openenv", options={"url": url, "instruction": "goal"})).tasks(
                    "train", 1
                )


def test_an_end_without_a_reward_is_a_failure_and_no_loss():
    class Breaking(Treasures):
        def step(self, actions):
            raise RuntimeError("out of order")

    treasures = Breaking(TREASURES)
    with serving(Served(treasures, treasures.tasks("train", 1), 5, "treasures")) as url:
        games = open_environment(PluginRecipe(name="openenv", options={"url": url}))
        assert played(games, ["look"]) == [(0.0, True, Failure.ENVIRONMENT)]


def test_a_server_that_says_nothing_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(openenv_games, "_ANSWER_S", 0.5)
    with serve(lambda connection: connection.recv() and connection.recv(), "127.0.0.1", 0) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        with pytest.raises(EnvironmentUnavailable, match="starts no episode"):
            open_environment(PluginRecipe(name="openenv", options={"url": url})).tasks("train", 1)


def test_a_server_that_dies_amid_an_episode_fails_it_and_one_that_is_away_is_told():
    with serving(served()) as url:
        games = open_environment(PluginRecipe(name="openenv", options={"url": url}))
        games.reset(dict(enumerate(games.tasks("train", 1))))
    assert games.step({0: "look"})[0].failure is Failure.ENVIRONMENT
    with pytest.raises(EnvironmentUnavailable, match=r"starts no episode"):
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
