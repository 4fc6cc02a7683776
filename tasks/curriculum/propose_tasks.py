"""Propose the agent tasks of a round, and vary those at the edge of the policy's ability (paper, section 4.3).

in:  the pool of tasks, their reward entropies, the experience model
out: the tasks to dream next; the pool with new variations
"""

import random
from collections.abc import Sequence
from typing import Any

from infra.context import replay_store, run_context
from models.methods.curricula import open_curriculum
from schemas.recipes.learning import CurriculumRecipe
from schemas.records import AgentTask, Reference
from tasks.data.provenance import made_here
from tasks.data.rows import Provenance
from tasks.playing.draw_tasks import draw_tasks
from tasks.playing.groups import name_of_part
from tasks.running.artifacts import get_tasks, get_trajectories, put_tasks
from tasks.running.versioned import versioned_task


@versioned_task
def propose_tasks(
    pool: Reference,
    state: dict[str, Any],
    recipe: CurriculumRecipe,
    num_tasks: int,
    seed: int,
    round: int,
    played: Sequence[Reference] = (),
    logs: Sequence[Reference] = (),
    share_done: float = 0.0,
) -> Reference:
    """Draw tasks of a round by the curriculum, generated ones bounded by lambda; store them in `agent_tasks`.

    Args:
        pool: Tasks to draw from.
        state: State of the curriculum.
        recipe: Curriculum, and lambda.
        num_tasks: Number of tasks to draw.
        seed: Seed of the recipe.
        round: Number of the round, counted from 0.
        played: Tasks already drawn in this round.
        logs: Trajectories with wins to start from, for a curriculum that needs them.
        share_done: Share of the rounds that are done.
    """
    already = {one.parent_id if one.is_snapshot else one.task_id for part in played for one in get_tasks(part)}
    max_generated = int(recipe.max_generated_share * num_tasks)
    draw_seed = name_of_part(f"{seed}/propose/{round}", len(played), "/")
    drawn = draw_tasks(pool, state, recipe, num_tasks, max_generated, already, draw_seed)
    wins = [one for one in get_trajectories(*logs) if one.success and one.origin == "real"]
    drawn = open_curriculum(recipe.method, state).starts(drawn, wins, share_done, random.Random(f"{draw_seed}/starts"))
    replay_store().upsert("agent_tasks", _rows(drawn, state.get("entropies", {}), made_here(seed, round)))
    num_snapshots = sum(task.is_snapshot for task in drawn)
    num_generated = sum(task.generated for task in drawn) - num_snapshots
    return put_tasks(drawn, num_generated=num_generated, **({"num_snapshots": num_snapshots} if num_snapshots else {}))


@versioned_task
def observe_groups(
    groups: list[Reference], state: dict[str, Any], recipe: CurriculumRecipe, num_wanted: int
) -> dict[str, Any]:
    """Return the curriculum's state after the groups of a round, and the number of groups it still asks for.

    Args:
        groups: Groups of the round so far.
        state: State of the curriculum before the round.
        recipe: Curriculum.
        num_wanted: Number of groups per round, as the recipe says.
    """
    curriculum, trajectories = open_curriculum(recipe.method, state), get_trajectories(*groups)
    missing = curriculum.num_missing(trajectories, num_wanted)
    curriculum.observe(trajectories)
    return {"state": curriculum.state(), "missing": missing}


def _rows(
    tasks: Sequence[AgentTask], entropies: dict[str, float], made_by: Provenance
) -> list[dict[str, str | int | float | None]]:
    columns = ("task_id", "instruction", "split", "family", "initial_state", "parent_id")
    return [
        {
            **{name: getattr(task, name) for name in columns},
            "row_id": f"{run_context().run_id}/{made_by.round}/{task.task_id}",
            "reward_entropy": entropies.get(task.task_id),
            **made_by.columns(),
        }
        for task in tasks
    ]
