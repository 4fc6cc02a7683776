"""Dreamt episodes per second where one vLLM server is policy and experience model: each by itself, and in lockstep.

Actions and predictions have at most 100 tokens, and every token may end them. 32 episodes of four turns are dreamt, eight of each
task.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from infra.engines.vllm import VllmEngine
from infra.engines.vllm_served import ServedModel
from models.rollout.independent_rollout import IndependentRollout
from models.rollout.rollouts import Rollout
from models.text.policies.plain_policy import PlainPolicy
from schemas.ports import Engine
from schemas.recipes.policy import PolicyRecipe
from schemas.records import AgentTask, Step
from schemas.sampling import Sampling
from tests.benchmarks.episodes import STATE, TASK, served
from tests.benchmarks.network import NUM_WORDS, endless_format, rates, text
from tests.rollouts import rollout_options

NUM_TASKS, GROUP, NUM_TURNS = 4, 8, 4
_MAX_TOKENS, _NUM_ENDS = 100, 40
_ENDS = tuple(range(NUM_WORDS - _NUM_ENDS, NUM_WORDS))
_STEPS = "vllm:iteration_tokens_total_count"


class Policy(PlainPolicy):
    """Policy whose actions end as predictions do."""

    def sampling(self, temperature: float) -> Sampling:
        """See PolicyFormat."""
        return Sampling(_MAX_TOKENS, _ENDS, temperature)


class Imagined:
    """Environment whose answers a server writes."""

    def __init__(self, engine: Engine) -> None:
        """Create an environment on an engine."""
        self._engine, self._words = engine, endless_format()

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """See Environment."""
        return {slot: text(STATE, task.task_id) for slot, task in tasks.items()}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """See Environment."""
        rows, streams = range(len(actions)), self._engine.open(len(actions))
        streams.extend(rows, [self._words.action(f"{text(STATE, action)} {action}") for action in actions.values()])
        answers = streams.generate(rows, Sampling(_MAX_TOKENS, _ENDS))
        states = [text(STATE, self._words.decode(one.content)) for one in answers]
        return {slot: Step(state, 0.0, done=False, success=False) for slot, state in zip(actions, states, strict=True)}


def ours() -> list[float]:
    """Measure episodes that do not wait for each other."""
    return _measured(IndependentRollout)


def lockstep() -> list[float]:
    """Measure episodes that all act, and then are all predicted."""
    return _measured(Rollout)


def steps() -> dict[str, int]:
    """Return the number of steps of the server, each of which computes one more token of all that run."""
    with _server() as server:
        socket = httpx.HTTPTransport(uds=f"{server._server._folder.name}/socket")
        client, counts = httpx.Client(transport=socket, base_url="http://vllm"), {}
        for kind in (IndependentRollout, Rollout):
            before = _count(client)
            _rollout(kind, server).play(_tasks())
            counts[kind.__name__] = _count(client) - before
        return counts


def _count(client: httpx.Client) -> int:
    (line,) = (one for one in client.get("/metrics").text.splitlines() if one.startswith(_STEPS))
    return int(float(line.split()[-1]))


def _measured(kind: Any) -> list[float]:
    with _server() as server:
        rollout = _rollout(kind, server)
        return rates(lambda: rollout.play(_tasks()), NUM_TASKS * GROUP, repeats=3)


@contextmanager
def _server() -> Iterator[ServedModel]:
    server = served()
    try:
        yield server
    finally:
        server.close()


def _rollout(kind: Any, server: ServedModel) -> Any:
    engine = VllmEngine(server)
    policy = Policy(endless_format(), PolicyRecipe(remember_episode=False))
    return kind(engine, policy, Imagined(engine), "dream", rollout_options(max_steps=NUM_TURNS))


def _tasks() -> list[AgentTask]:
    instructions = [text(TASK, f"task {number}") for number in range(NUM_TASKS)]
    return [AgentTask(one, one, "train", "family") for one in instructions for _ in range(GROUP)]
