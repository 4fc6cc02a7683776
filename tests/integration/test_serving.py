"""Served dream: many clients play in one environment, and none is harmed by, or sees anything of, another."""

import asyncio
import json
import math
import random
import time
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest
from gymnasium.utils.env_checker import check_env
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from flows.planning.check_serving import find_dream
from infra.environments.by_name import open_environment
from infra.serving.dynamic_batching import DynamicBatcher
from infra.serving.gymnasium_environment import TextEnvironment
from infra.serving.messages import MAX_ACTION_CHARACTERS
from infra.serving.openenv import Limits, Served
from infra.serving.single_player import SinglePlayerEnvironment
from models.rollout.behaviour_policies import collect
from schemas.errors import EnvironmentUnavailable, InputError
from schemas.plain import plain
from schemas.recipes.environments import CookingRecipe
from schemas.records import AgentTask, Failure, Reference, Step
from tests.integration.dream_server import play_with_openenv, serving
from tests.stored_runs import finished_run

pytestmark = pytest.mark.integration
COOKING = CookingRecipe()


class Counting:
    """Environment that counts each slot's steps, and fails or waits on request."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.tasks: dict[int, AgentTask] = {}
        self.sizes: list[int] = []

    def reset(self, tasks):
        self.tasks |= tasks
        self.counts |= dict.fromkeys(tasks, 0)
        return {slot: f"{task.task_id} 0" for slot, task in tasks.items()}

    def step(self, actions):
        self.sizes.append(len(actions))
        if "raise" in actions.values():
            raise RuntimeError("secret of the server")
        if "lose" in actions.values():
            raise EnvironmentUnavailable("the game is away: start it")
        if "wait" in actions.values():
            time.sleep(0.5)
        return {slot: self._step(slot, action) for slot, action in actions.items()}

    def _step(self, slot: int, action: str) -> Step:
        self.counts[slot] += 1
        failure = Failure.UNPARSABLE if action == "break" else None
        state = f"{self.tasks[slot].task_id} {self.counts[slot]}"
        return Step(state, float(action == "win"), done=action == "win", success=action == "win", failure=failure)


class Wordy(Counting):
    """Environment of long states: a few fill the buffers between two ends of a connection, compressed as they are."""

    def reset(self, tasks):
        return dict.fromkeys(super().reset(tasks), random.Random(0).randbytes(1_000_000).hex())


class BegunOnce(Counting):
    """Environment that begins one episode and no other."""

    def reset(self, tasks):
        if self.tasks:
            raise RuntimeError("secret of the server")
        return super().reset(tasks)


TASKS = [AgentTask(f"task-{number}", f"do {number}", "train", "family") for number in range(5)]


def counting() -> Served:
    return Served(Counting(), TASKS, max_steps=4, description="counts")


@pytest.fixture
def url() -> Iterator[str]:
    with serving(counting()) as url:
        yield url


def talk(url: str, *messages: object, **options) -> list[dict]:
    """Return what one client receives for messages, each of which must be answered soon."""

    async def talking() -> list[dict]:
        heard = []
        async with connect(f"{url}/ws", **options) as socket:
            for message in messages:
                await socket.send(message if isinstance(message, str | bytes) else json.dumps(message))
                heard.append(json.loads(await socket.recv()))
        return heard

    return asyncio.run(asyncio.wait_for(talking(), 60))


def reset(**data: object) -> dict:
    return {"type": "reset", "data": data}


def act(action: str) -> dict:
    return {"type": "step", "data": {"action": action}}


def test_64_sessions_of_openenvs_own_client_play_their_own_game_to_its_end():
    environment = open_environment(COOKING)
    tasks = environment.tasks("train", 64)
    plans = [[turn.action for turn in one.turns] for one in collect(environment, tasks, [0.0], 0, COOKING.max_steps)]
    with serving(Served(open_environment(COOKING), tasks, COOKING.max_steps, "cooking")) as url:
        asked = [{"reset": {"task_id": t.task_id}, "actions": p} for t, p in zip(tasks, plans, strict=True)]
        played = play_with_openenv(url, asked)
    for task, plan, one in zip(tasks, plans, played, strict=True):
        assert {seen["instruction"] for seen, _, _ in one["seen"]} == {task.instruction}
        assert [(reward, done) for _, reward, done in one["seen"]] == [
            (None, False),
            *[(0.0, False)] * (len(plan) - 1),
            (1.0, True),
        ]
        assert one["state"] == {"episode_id": None, "step_count": len(plan), "task_id": task.task_id}


def test_who_asks_while_it_is_at_work_is_answered_together():
    served = counting()

    async def many(url: str) -> None:
        async def one() -> None:
            async with connect(f"{url}/ws") as socket:
                for message in (reset(), act("wait"), act("look")):
                    await socket.send(json.dumps(message))
                    await socket.recv()

        await asyncio.gather(*(one() for _ in range(40)))

    with serving(served) as url:
        asyncio.run(many(url))
    assert sum(served.environment.sizes) == 80
    assert len(served.environment.sizes) < 20


def test_a_seed_or_a_name_gives_the_same_task_and_without_them_the_next_one_comes_whoever_asks(url):
    heard = talk(url, reset(seed=7), reset(seed=7), reset(task_id="task-3"), reset(), reset())
    heard += talk(url, reset())
    assert [one["data"]["observation"]["task_id"] for one in heard] == [
        "task-2",
        "task-2",
        "task-3",
        "task-0",
        "task-1",
        "task-2",
    ]


def test_an_episode_ends_at_the_step_limit_or_where_the_environment_fails_which_is_no_reward(url):
    *_, last, after = talk(url, reset(), *[act("look")] * 4, act("look"))
    assert last["data"]["done"]
    assert last["data"]["observation"]["truncated"]
    assert after["data"]["code"] == "VALIDATION_ERROR"
    _, broken = talk(url, reset(), act("break"))
    assert (broken["data"]["reward"], broken["data"]["done"]) == (None, True)
    assert broken["data"]["observation"]["failure"] == Failure.UNPARSABLE


@pytest.mark.parametrize(("action", "reward"), [("win", 1.0), ("break", None)])
def test_what_the_last_step_allowed_brings_about_is_not_cut_off(url, action, reward):
    last = talk(url, reset(), *[act("look")] * 3, act(action))[-1]["data"]
    assert (last["reward"], last["done"]) == (reward, True)
    assert (last["observation"]["success"], last["observation"]["truncated"]) == (action == "win", False)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("nonsense", "INVALID_JSON"),
        ("[1]", "UNKNOWN_TYPE"),
        ({"type": "dance"}, "UNKNOWN_TYPE"),
        ({"type": "step", "data": {}}, "VALIDATION_ERROR"),
        ({"type": "step", "data": {"action": "look", "reason": ""}}, "VALIDATION_ERROR"),
        (act("x" * (MAX_ACTION_CHARACTERS + 1)), "VALIDATION_ERROR"),
        (reset(task_id="task-9"), "VALIDATION_ERROR"),
        (reset(seed=-1), "VALIDATION_ERROR"),
    ],
)
def test_a_bad_message_is_refused_and_the_session_goes_on(url, message, code):
    begun, bad, good, state = talk(url, reset(episode_id="mine"), message, act("look"), {"type": "state"})
    assert (bad["type"], bad["data"]["code"]) == ("error", code)
    assert "xxx" not in bad["data"]["message"]
    assert good["data"]["observation"]["state"] == begun["data"]["observation"]["state"].replace(" 0", " 1")
    assert state["data"] == {"episode_id": "mine", "step_count": 1, "task_id": begun["data"]["observation"]["task_id"]}


def test_bytes_are_refused_and_the_session_goes_on(url):
    begun, bad, good = talk(url, reset(), b"\x00", act("look"))
    assert (begun["type"], bad["data"]["code"], good["type"]) == ("observation", "INVALID_JSON", "observation")


def test_what_goes_wrong_inside_is_not_told_unless_we_have_words_for_it(url):
    _, failed, lost, after = talk(url, reset(seed=0), act("raise"), act("lose"), act("look"))
    assert failed["data"]["code"] == "EXECUTION_ERROR"
    assert "secret" not in json.dumps(failed)
    assert lost["data"] == {"code": "EXECUTION_ERROR", "message": "the game is away: start it"}
    assert after["type"] == "observation"


def test_an_episode_that_cannot_be_begun_is_none_to_act_in():
    with serving(Served(BegunOnce(), TASKS, max_steps=4, description="once")) as url:
        _, failed, after = talk(url, reset(), reset(), act("look"))
    assert (failed["data"]["code"], after["data"]["code"]) == ("EXECUTION_ERROR", "VALIDATION_ERROR")


def test_who_makes_it_fail_hears_of_it_alone():
    together = DynamicBatcher(Counting(), 3)

    async def playing() -> list:
        work = asyncio.create_task(together.work())
        await asyncio.gather(*(together.begin(slot, TASKS[slot]) for slot in range(3)))
        actions = ("look", "raise", "look")
        asked = [together.step(slot, action) for slot, action in enumerate(actions)]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        work.cancel()
        return outcomes

    first, second, third = asyncio.run(playing())
    assert (first.state, type(second), third.state) == ("task-0 1", RuntimeError, "task-2 1")


def test_who_takes_no_answers_gives_the_place_back():
    wordy = Served(Wordy(), TASKS, max_steps=4, description="has much to say")
    with serving(wordy, Limits(max_sessions=1, send_s=0.5)) as url:

        async def deaf_beside_another() -> dict:
            async with connect(f"{url}/ws", max_queue=1, close_timeout=0.1, ping_interval=None) as deaf:
                heard = await first_answer(url)
                assert heard["data"]["code"] == "CAPACITY_REACHED"
                asks_on = asyncio.create_task(asked_without_end(deaf))
                while heard["type"] == "error":
                    await asyncio.sleep(0.2)
                    heard = await first_answer(url)
                asks_on.cancel()
                return heard

        assert asyncio.run(asyncio.wait_for(deaf_beside_another(), 60))["type"] == "observation"


async def asked_without_end(socket: ClientConnection) -> None:
    while True:
        await socket.send(json.dumps(reset()))


async def first_answer(url: str) -> dict:
    async with connect(f"{url}/ws", max_size=None) as socket:
        with suppress(ConnectionClosed):
            await socket.send(json.dumps(reset()))
        return json.loads(await socket.recv())


def test_one_too_many_is_told_and_a_place_is_free_when_somebody_left():
    with serving(counting(), Limits(max_sessions=1)) as url:

        async def two() -> dict:
            async with connect(f"{url}/ws") as first:
                await first.send(json.dumps(reset()))
                await first.recv()
                async with connect(f"{url}/ws") as second:
                    return json.loads(await second.recv())

        assert asyncio.run(two())["data"]["code"] == "CAPACITY_REACHED"
        time.sleep(0.5)
        assert talk(url, reset())[0]["type"] == "observation"


def test_who_closes_the_session_is_let_go_and_the_place_is_free():
    with serving(counting(), Limits(max_sessions=1)) as url:
        with pytest.raises(ConnectionClosed):
            talk(url, reset(), {"type": "close"})
        assert talk(url, reset())[0]["type"] == "observation"


def test_a_silent_client_and_one_that_leaves_amid_a_step_give_their_place_back():
    with serving(counting(), Limits(max_sessions=1, idle_s=0.3)) as url:

        async def silent() -> None:
            async with connect(f"{url}/ws") as socket:
                await socket.recv()

        with pytest.raises(ConnectionClosed):
            asyncio.run(silent())

        async def leaves() -> None:
            async with connect(f"{url}/ws") as socket:
                for message in (reset(), act("wait")):
                    await socket.send(json.dumps(message))

        asyncio.run(leaves())
        time.sleep(1.5)
        first, second = talk(url, reset(task_id="task-1"), act("look"))
        assert (first["data"]["observation"]["state"], second["data"]["observation"]["state"]) == (
            "task-1 0",
            "task-1 1",
        )


def test_with_a_token_nobody_plays_without_it():
    with serving(counting(), token="sesame") as url:
        for stranger in (url, f"{url}/token/simsim"):
            with pytest.raises(InvalidStatus):
                talk(stranger, reset())
        assert talk(f"{url}/token/sesame", reset())[0]["type"] == "observation"
        bearer = {"Authorization": "Bearer sesame"}
        assert talk(url, reset(), additional_headers=bearer)[0]["type"] == "observation"


def test_what_it_tells_of_itself_over_http_is_what_is_said_and_heard(url):
    health, metadata, schema = (
        httpx.get(f"{url.replace('ws', 'http', 1)}/{page}").raise_for_status().json()
        for page in ("health", "metadata", "schema")
    )
    assert health == {"status": "healthy"}
    assert metadata == {"name": "dreamgym", "description": "counts"}
    begun, stands = talk(url, reset(), {"type": "state"})
    assert {kind: set(told["properties"]) for kind, told in schema.items()} == {
        "action": {"action", "metadata"},
        "observation": set(begun["data"]["observation"]),
        "state": set(stands["data"]),
    }
    assert schema["action"]["properties"]["action"]["maxLength"] == MAX_ACTION_CHARACTERS


def finish(run_id: str, **lineage: str) -> None:
    """Save the record of a run that produced artifacts with these digests."""
    made = {name: Reference("", digest, "model") for name, digest in lineage.items()}
    finished_run(run_id, lineage=plain(made))


@pytest.mark.usefixtures("home")
def test_a_dream_is_found_by_the_start_of_one_digest_or_id_and_what_names_none_is_told():
    for run_id, digest in (("day-1", "3f9c"), ("day-2", "3fa0"), ("day-3", "3f9c")):
        finish(run_id, experience_model=digest)
    found = {name: find_dream(name)["run_id"] for name in ("3f9", "3fa", "day-1", None)}
    assert found == {"3f9": "day-3", "3fa": "day-2", "day-1": "day-1", None: "day-3"}
    with pytest.raises(InputError, match="begin with '3f': 3f9c, 3fa0; give more of one"):
        find_dream("3f")
    finish("day-4", logs="3fb1")
    with pytest.raises(InputError, match="day-4 has no experience model yet"):
        find_dream(None)


def test_gymnasiums_own_check_passes_and_its_seeds_hold():
    environment = open_environment(COOKING)
    mine = TextEnvironment(SinglePlayerEnvironment(environment, environment.tasks("train", 20), COOKING.max_steps))
    check_env(mine)
    assert mine.reset(seed=3) == mine.reset(seed=3) != mine.reset(seed=4)


def test_a_gymnasium_episode_is_won_cut_off_or_broken():
    mine = TextEnvironment(SinglePlayerEnvironment(Counting(), TASKS, max_steps=2))
    assert mine.reset(options={"task_id": "task-3"}) == ("do 3\n\ntask-3 0", {"task_id": "task-3"})
    assert mine.step("win")[1:4] == (1.0, True, False)
    with pytest.raises(InputError, match="reset first"):
        mine.step("win")
    mine.reset()
    assert mine.step("look")[1:4] == (0.0, False, False)
    assert mine.step("look")[1:4] == (0.0, False, True)
    mine.reset()
    _, reward, terminated, truncated, info = mine.step("break")
    assert (math.isnan(reward), terminated, truncated, info["failure"]) == (True, False, True, Failure.UNPARSABLE)
