"""Episodes that do not wait for each other, against a server that is asked from several threads."""

from contextvars import ContextVar
from threading import Barrier, Event, Lock

import pytest

from infra.environments.by_name import open_environment
from models.generation.torch_engine import TorchEngine, engine_weights
from models.network.language_model import load_model
from models.rollout.independent_rollout import IndependentRollout
from models.rollout.rollouts import Rollout
from schemas.recipes.environments import CookingRecipe
from schemas.records import AgentTask, Step
from schemas.sampling import Sampled
from tasks.backbones.find_backbone import SHIPPED
from tests.rollouts import Speaker, plain_policy, rollout_options

NUM_TURNS = 3


@pytest.fixture(scope="module")
def model():
    return load_model(SHIPPED / "textworld-tiny")


class Server(Speaker):
    """Engine that answers every request alike, each in streams of its own."""

    def __init__(self, ids: list[int]) -> None:
        self.answer = Sampled(ids, [0.0] * len(ids), ended=True)

    def generate(self, rows, sampling):
        return [self.answer for _ in rows]


class World:
    """Environment whose episodes never end by themselves; `meet` is called with the slot and the turn of each step."""

    def __init__(self, meet=lambda slot, turn: None) -> None:
        self.meet, self.turns = meet, dict[int, int]()

    def reset(self, tasks):
        self.turns |= dict.fromkeys(tasks, 0)
        return {slot: task.task_id for slot, task in tasks.items()}

    def step(self, actions):
        for slot in actions:
            self.turns[slot] += 1
            self.meet(slot, self.turns[slot])
        return {slot: Step(f"turn {self.turns[slot]}", 0.0, done=False, success=False) for slot in actions}


def rollout(model, world: World, num_slots: int = 8) -> IndependentRollout:
    engine, options = Server(model.format.action("look")), rollout_options(max_steps=NUM_TURNS, num_slots=num_slots)
    return IndependentRollout(engine, plain_policy(model.format), world, "dream", options)


def tasks(count: int) -> list[AgentTask]:
    return [AgentTask(f"task {number}", f"do {number}", "train", "f") for number in range(count)]


def test_an_episode_ends_while_another_still_waits_for_its_first_answer(model):
    last_is_over = Event()

    def meet(slot: int, turn: int) -> None:
        if slot == 0:
            assert last_is_over.wait(10), "the last episode waited for the first"
        if (slot, turn) == (1, NUM_TURNS):
            last_is_over.set()

    episodes = rollout(model, World(meet)).play(tasks(2))
    assert [one.task.task_id for one in episodes] == ["task 0", "task 1"]
    assert [[turn.step.state for turn in one.turns] for one in episodes] == [["turn 1", "turn 2", "turn 3"]] * 2


def test_as_many_episodes_run_at_once_as_there_are_slots(model):
    together, running = Barrier(2, timeout=10), set[int]()

    def meet(slot: int, turn: int) -> None:
        running.add(slot)
        assert len(running) <= 2
        together.wait()
        if turn == NUM_TURNS:
            running.discard(slot)

    assert len(rollout(model, World(meet), num_slots=2).play(tasks(4))) == 4


def test_tokens_limits_and_progress_are_those_of_all_episodes_and_the_context_reaches_them(model):
    seen, named = [], ContextVar("named", default="")
    named.set("run")
    played = rollout(model, World(lambda slot, turn: contexts.add(named.get())))
    contexts, played_tasks = set[str](), tasks(3)
    assert played.play(played_tasks, seen.append)
    assert contexts == {"run"}
    assert (seen[-1].num_done, seen[-1].num_total) == (3, 3)
    assert rollout(model, World()).play([]) == []


def test_an_error_in_one_episode_ends_all_of_them(model):
    def meet(slot: int, turn: int) -> None:
        if slot == 1:
            raise RuntimeError("no server")
        assert turn == 1 or failed.wait(10)

    failed = Event()
    world = World(meet)
    with pytest.raises(RuntimeError, match="no server"):
        rollout(model, world, num_slots=2).play(tasks(20), lambda progress: failed.set())
    assert len(world.turns) < 20, "episodes that waited for a slot are not begun"


def test_greedy_episodes_are_those_in_lockstep(model):
    environment, options = open_environment(CookingRecipe()), rollout_options(max_steps=4, temperature=0.0, num_slots=4)
    format, played = plain_policy(model.format), environment.tasks("train", 6)
    one, other = (
        kind(TorchEngine(engine_weights(model.network), 0), format, Alone(environment), "real", options)
        for kind in (Rollout, IndependentRollout)
    )
    assert one.play(played) == other.play(played)
    assert (one.num_tokens, one.limits) == (other.num_tokens, other.limits)


class Alone:
    """Environment that is asked by one thread at a time."""

    def __init__(self, environment) -> None:
        self.environment, self.lock = environment, Lock()

    def reset(self, tasks):
        with self.lock:
            return self.environment.reset(tasks)

    def step(self, actions):
        with self.lock:
            return self.environment.step(actions)
