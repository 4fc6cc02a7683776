"""Recall real episodes of train tasks from the replay store: earlier logs, on-policy episodes, sim-to-real.

in:  a pinned version of the transitions, the environment's train tasks
out: trajectories by reference, with the reasoning that they have; no row is written
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from infra.context import replay_store, run_context
from infra.environments.by_name import open_environment
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import AgentTask, Reference, Step, Trajectory, Turn
from tasks.data.rows import stored_id, trajectory_id
from tasks.running.artifacts import get_trajectories, put_trajectories
from tasks.running.versioned import versioned_task

_WHOLE_REAL_ROWS = "origin = 'real' AND split = 'train' AND failure IS NULL"
_COLUMNS = (
    *("trajectory_id", "task_id", "turn", "state", "thought", "action", "next_state", "reasoning"),
    *("real_reward", "done", "success", "truncated", "source"),
)


@versioned_task
def recall(table_tag: str, logs: Reference, environment: EnvironmentRecipe) -> Reference:
    """Return stored real episodes of train tasks, without those in the logs of this run.

    Args:
        table_tag: Tag that pins the version of the transitions to read.
        logs: Logs of this run.
        environment: Environment whose train tasks count; episodes of other tasks are ignored.
    """
    with run_context().display.stage("recall"):
        rows = replay_store().read("transitions", _WHOLE_REAL_ROWS, _COLUMNS, as_of=table_tag)
        tasks = open_environment(environment).tasks("train", environment.num_train_tasks)
        logged = get_trajectories(logs)
        known = {
            name(one) for one in logged for name in (stored_id, trajectory_id)
        }  # trajectory_id named rows of the first schema version
        episodes = episodes_of(rows, {task.task_id: task for task in tasks}, known)
    return put_trajectories(episodes)


def episodes_of(
    rows: Iterable[Mapping[str, Any]], train_tasks: Mapping[str, AgentTask], known: set[str]
) -> list[Trajectory]:
    """Return complete episodes of train tasks among stored rows, in the order of their ids.

    Args:
        rows: Rows of transitions, in any order.
        train_tasks: Train tasks by task id.
        known: Ids of stored episodes to leave out.
    """
    by_episode: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["task_id"] in train_tasks and row["trajectory_id"] not in known:
            by_episode[row["trajectory_id"]].append(row)
    whole = ((name, sorted(turns, key=lambda row: row["turn"])) for name, turns in sorted(by_episode.items()))
    return [_trajectory(name, turns, train_tasks[turns[0]["task_id"]]) for name, turns in whole if _is_whole(turns)]


def _is_whole(turns: list[Mapping[str, Any]]) -> bool:
    ended = turns[-1]["done"] or turns[-1]["truncated"]
    return bool(ended) and [row["turn"] for row in turns] == list(range(len(turns)))


def _trajectory(name: str, rows: list[Mapping[str, Any]], task: AgentTask) -> Trajectory:
    turns = [
        Turn(
            row["state"],
            row["action"],
            Step(row["next_state"], row["real_reward"], row["done"], row["success"], row["reasoning"]),
            thought=row.get("thought", ""),
        )
        for row in rows
    ]
    return Trajectory(task, "real", turns, truncated=rows[-1]["truncated"], source=rows[0]["source"], episode_id=name)
