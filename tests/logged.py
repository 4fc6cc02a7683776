"""Logs of expert play, as a team might hand them in."""

import json
from pathlib import Path

from infra.environments.by_name import open_environment
from models.rollout.behaviour_policies import collect
from schemas.recipes.environments import CookingRecipe


def logged_rows(num_tasks: int, first_task: int = 0) -> list[dict]:
    """Return the transitions of some train tasks, one episode each."""
    real = open_environment(CookingRecipe())
    return [
        {
            "trajectory_id": episode.task.task_id,
            "turn": number,
            "task_id": episode.task.task_id,
            "instruction": episode.task.instruction,
            "family": episode.task.family,
            "split": "train",
            "state": turn.state,
            "action": turn.action,
            "next_state": turn.step.state,
            "reward": turn.step.reward,
            "done": turn.step.done,
            "success": turn.step.success,
            "truncated": False,
            "source": "our expert",
            "seed": episode.task.seed,
            "schema_version": 1,
        }
        for episode in collect(real, real.tasks("train", num_tasks, first_task), [0.0], 0, 20)
        for number, turn in enumerate(episode.turns)
    ]


def write_log(file: Path, rows: list[dict]) -> None:
    """Write rows as JSON lines."""
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
