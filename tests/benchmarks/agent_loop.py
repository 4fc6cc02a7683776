"""What a pretrained chat model learns as the model of somebody's agent, in that agent's own loop.

python -m tests.benchmarks.agent_loop FOLDER [--rounds 6] [--groups 8] [--valid 100]

Logs of the treasure agent, with an expert that errs as its model, are ingested; SmolLM2-135M is cloned from twelve of them,
then trained by GRPO in episodes of the loop, for real. Prints success on valid tasks before and after as JSON.
"""

import json
import random
from pathlib import Path
from typing import Annotated

import typer

from flows.planning.load_recipe import load_recipe
from flows.try_methods import trained_for_real
from infra.environments.agent_loops.template import TreasureAgent
from models.measurement.intervals import paired_gain
from schemas.chat import conversation_in
from schemas.recipes.environments import PluginRecipe
from schemas.recipes.log_mapping import LogMapping
from tasks.logs.convert import convert

_MAX_STEPS = 5
_RECIPE = """\
name = "treasure-agent-smollm2"
environment = {{ name = "treasure-agent", families = ["3"], num_train_tasks = 96, num_valid_tasks = {valid}, num_test_tasks = 100, max_steps = 5 }}
backbone = {{ model = "smollm2-135m", scratch = false }}
policy = {{ template = "messages", max_action_tokens = 16, num_slots = 64 }}
ingest = {{ path = "{logs}", require_known_tasks = false }}
start = {{ num_demonstrations = 12, renamed_copies = 0, sft = {{ epochs = 2, learning_rate = 2e-4, tokens_per_update = 2_048 }} }}
training = {{ tokens_per_batch = 4_000 }}
[rl]
groups_per_round = {groups}
group_size = 8
updates_per_round = 4
learning_rate = 2e-5
decay_per_round = 1
temperature = 1.0
entity_renaming = 0
max_kl = 0.5
"""


def main(
    folder: Path,
    rounds: Annotated[int, typer.Option(help="Rounds of training.")] = 6,
    groups: Annotated[int, typer.Option(help="Groups of eight episodes in a round.")] = 8,
    valid: Annotated[int, typer.Option(help="Valid tasks.")] = 100,
) -> None:
    """Make the logs, train, and print what came of it."""
    folder.mkdir(parents=True, exist_ok=True)
    log, ingested, recipe = folder / "logs.jsonl", folder / "logs", folder / "agent.toml"
    log.write_text("".join(f"{json.dumps(one)}\n" for one in logged_episodes(96)))
    convert(log, LogMapping(states="conversations"), ingested, lambda rows: None)
    recipe.write_text(_RECIPE.format(valid=valid, logs=ingested, groups=groups))
    found = trained_for_real(load_recipe(str(recipe), []), "agent-loop", rounds)
    gain = paired_gain(found["after"], found["before"])
    print(json.dumps({**found, "gain": [gain.mean, gain.low, gain.high]}))


def logged_episodes(num_episodes: int) -> list[dict]:
    """Return conversations of the agent with an expert that opens empty boxes again, and sometimes breaks one."""
    agent, rng = TreasureAgent(PluginRecipe(name="treasure-agent", families=("3",))), random.Random(0)
    tasks = agent.tasks("train", num_episodes)
    states = agent.reset(dict(enumerate(tasks)))
    going, found = set(states), dict[int, dict]()
    for step in range(_MAX_STEPS):
        steps = agent.step({slot: _action(states[slot], rng) for slot in going})
        for slot, one in steps.items():
            states[slot] = one.state
            if one.done or step == _MAX_STEPS - 1:
                going.discard(slot)
                task, ended = tasks[slot], {"success": one.success, "truncated": not one.done}
                named = {"id": f"{task.task_id}/log", "task_id": task.task_id, "instruction": task.instruction}
                found[slot] = {**named, "family": "3", "messages": conversation_in(one.state), **ended}
    return [found[slot] for slot in sorted(found)]


def _action(state: str, rng: random.Random) -> str:
    lines = (conversation_in(state) or [])[-1]["content"].split("\n")
    boxes = [line.removeprefix("- ").partition(":")[0] for line in lines]
    closed = [box for box, line in zip(boxes, lines, strict=True) if "closed" in line]
    if rng.random() < 0.15:
        return f"break {rng.choice(boxes)}"
    if any("treasure" in line for line in lines):
        return "take treasure"
    return f"open {rng.choice(boxes if rng.random() < 0.3 else closed)}"


if __name__ == "__main__":
    typer.run(main)
