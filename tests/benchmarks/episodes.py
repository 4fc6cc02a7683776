"""Episodes per second, of eight turns: a task of 200 tokens, then 150 tokens of state and 50 of action each turn.

The policy sees the whole episode; 32 are played, eight of each task.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from schemas.records import AgentTask, Step
from tests.benchmarks.network import endless_format, network, rates, text, tokenizer

NUM_TASKS, GROUP, NUM_TURNS = 4, 8, 8
TASK, STATE, ACTION = 200, 150, 50
_REPEATS = 3


class Scripted:
    """Environment that answers with random text and never ends."""

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """See Environment."""
        return {slot: text(STATE, slot) for slot in tasks}

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """See Environment."""
        return {slot: Step(text(STATE, action), 0.0, done=False, success=False) for slot, action in actions.items()}


def tasks() -> list[AgentTask]:
    """Return all tasks that are played."""
    instructions = [text(TASK, f"task {number}") for number in range(NUM_TASKS)]
    return [AgentTask(one, one, "train", "family") for one in instructions for _ in range(GROUP)]


def ours() -> list[float]:
    """Measure our rollout on the torch engine."""
    from models.generation.torch_engine import TorchEngine, engine_weights

    return _played(TorchEngine(engine_weights(network()), 0))


def _played(engine: Any) -> list[float]:
    from models.rollout.rollouts import Rollout
    from tests.rollouts import plain_policy, rollout_options

    format = plain_policy(endless_format(), max_action_tokens=ACTION)
    rollout = Rollout(engine, format, Scripted(), "real", rollout_options(max_steps=NUM_TURNS))
    return rates(lambda: rollout.play(tasks()), len(tasks()), _REPEATS)


class ToolEnvironment:
    """The same environment as TRL expects it: a tool that the policy calls."""

    def reset(self, **_: Any) -> str:
        """Return the first state."""
        return " " + text(STATE, "first")

    def act(self, action: str) -> str:
        """Do something.

        Args:
            action: What to do.
        """
        return text(STATE, action)


_TEMPLATE = (
    "{% for m in messages %}{{ m['content'] }} {% for c in m['tool_calls'] or [] %}"
    "{{ c['function']['name'] }} {{ c['function']['arguments'] }} {% endfor %}{% endfor %}"
)
"""Chat template of nothing but the contents, so that both sides compute the same tokens."""


def trl() -> list[float]:
    """Measure TRL's environment_factory on transformers; whatever the policy writes is taken for a call of the tool."""
    from trl.trainer import grpo_trainer

    from tests.benchmarks.update import trl_trainer

    words = tokenizer()
    words.chat_template, words.response_template = _TEMPLATE, {}
    grpo_trainer.parse_response = _call_of
    played = [{"prompt": [{"role": "user", "content": task.instruction}]} for task in tasks()]
    trainer = trl_trainer(
        network(),
        len(played),
        beta=0.0,
        environment_factory=ToolEnvironment,
        processing_class=words,
        max_completion_length=ACTION,
        max_tool_calling_iterations=NUM_TURNS - 1,
        generation_kwargs={"min_new_tokens": ACTION},
    )
    trainer.max_completion_length = NUM_TURNS * (ACTION + STATE)  # limit of a turn above, of the episode from here
    measured = rates(lambda: trainer._generate_and_score_completions(played), len(played), _REPEATS)
    lengths = trainer._metrics["eval"]["completions/mean_length"]
    assert set(lengths) == {NUM_TURNS * ACTION}, f"every episode has all its turns, not {lengths}"
    return measured


def _call_of(words: Any, ids: list[int], **_: Any) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": "act", "arguments": {"action": words.decode(ids)}}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def ours_on_vllm() -> list[float]:
    """Measure our rollout on vLLM, which continues streams of tokens."""
    from infra.engines.vllm import VllmEngine

    server = served()
    try:
        return _played(VllmEngine(server))
    finally:
        server.close()


def chat_on_vllm() -> list[float]:
    """Measure vLLM's chat API, used as its clients do: all episodes at once, each sends all its messages every turn."""
    server = served()
    try:
        return rates(lambda: asyncio.run(_chats(Path(server._server._folder.name) / "socket")), len(tasks()), _REPEATS)
    finally:
        server.close()


async def _chats(socket: Path) -> None:
    import httpx
    from openai import AsyncOpenAI

    at = httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(uds=str(socket)))
    async with AsyncOpenAI(base_url="http://vllm/v1", api_key="none", http_client=at, timeout=600) as client:
        await asyncio.gather(*(_chat(client, task, number) for number, task in enumerate(tasks())))


async def _chat(client: Any, task: AgentTask, number: int) -> None:
    messages = [{"role": "user", "content": f"{task.instruction} {text(STATE, number)}"}]
    for _ in range(NUM_TURNS):
        answer = await client.chat.completions.create(
            model="dreamgym", messages=messages, max_tokens=ACTION, extra_body={"ignore_eos": True}
        )
        action = answer.choices[0].message.content
        messages += [{"role": "assistant", "content": action}, {"role": "user", "content": text(STATE, action)}]


def served() -> Any:
    """Return a vLLM server of the network."""
    from infra.engines.vllm_command import ServerOptions
    from infra.engines.vllm_served import ServedModel, Stored
    from infra.settings import Settings

    home = Path(tempfile.mkdtemp())
    return ServedModel(Settings(home=home), "bench", Stored("bench", _save), ServerOptions("bfloat16"), print)


def _save(folder: Path) -> None:
    words = tokenizer()
    words.chat_template = _TEMPLATE
    network().save_pretrained(folder)
    words.save_pretrained(folder)


def growth(*, remember_episode: bool = False, num_tasks: int = NUM_TASKS, repeats: int = _REPEATS) -> float:
    """Return the time of a step at turn 32 over that at turn 2.

    By default the policy sees its last two actions and the present state.
    """
    from models.generation.torch_engine import TorchEngine, engine_weights
    from models.rollout.rollouts import Rollout
    from tests.rollouts import plain_policy, rollout_options

    engine = TorchEngine(engine_weights(network()), 0)
    options = rollout_options(max_steps=33, max_episode_tokens=10_000)
    format = plain_policy(endless_format(), remember_episode=remember_episode, max_action_tokens=ACTION)
    ratios = []
    for _ in range(repeats):
        at: list[float] = []
        rollout = Rollout(engine, format, Scripted(), "real", options)
        rollout.play(tasks()[: num_tasks * GROUP], lambda _, at=at: at.append(time.perf_counter()))
        steps = [after - before for before, after in pairwise(at)]
        ratios.append(statistics.median(steps[-3:]) / statistics.median(steps[:3]))
    return statistics.median(ratios)


def growth_of_whole_episodes() -> float:
    """Return the same ratio for a policy that sees the whole episode: eight episodes, once."""
    return growth(remember_episode=True, num_tasks=1, repeats=1)
