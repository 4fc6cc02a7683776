"""Propose the agent tasks of a round, and vary those at the edge of the policy's ability (paper, section 4.3).

in:  the pool of tasks, their reward entropies, the experience model
out: the tasks to dream next; the pool with new variations
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from infra.context import replay_store, run_context
from infra.environments.by_name import open_environment
from models.experience.predictors import Predictor
from models.methods.curricula import open_curriculum, tasks_to_vary
from schemas.ports import RealEnvironment
from schemas.recipes.digests import digest_of
from schemas.recipes.learning import CurriculumRecipe
from schemas.recipes.networks import VARIATION_TOKENS, EngineRecipe, ExperienceRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import AgentTask, Reference
from tasks.data.provenance import made_here
from tasks.data.rows import Provenance
from tasks.playing.draw_tasks import draw_tasks
from tasks.playing.groups import name_of_part, seed_of_round
from tasks.running.artifacts import get_tasks, get_trajectories, put_tasks
from tasks.running.device import use_threads
from tasks.running.predictors import open_chat_predictor, open_predictor
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


@versioned_task
def vary_tasks(
    pool: Reference,
    state: dict[str, Any],
    experience_model: Reference,
    recipe: CurriculumRecipe,
    experience: ExperienceRecipe,
    environment: EnvironmentRecipe,
    engine: EngineRecipe,
    seed: int,
    round: int,
) -> Reference:
    """Return the pool with selected variations of its high-entropy tasks added."""
    use_threads()
    tasks = get_tasks(pool)
    edge = tasks_to_vary(tasks, state.get("entropies", {}), recipe.variations_per_round)
    if not edge:
        return pool
    with run_context().display.stage("vary tasks"):
        generator = _generator(experience_model, recipe, experience, engine, seed_of_round(seed, round))
        candidates = generate(generator, edge, recipe.generator_temperature)
        chosen, refused = select(candidates, tasks, open_environment(environment))
    return put_tasks([*tasks, *chosen], num_new=len(chosen), num_refused=refused)


def _generator(
    experience_model: Reference,
    recipe: CurriculumRecipe,
    experience: ExperienceRecipe,
    engine: EngineRecipe,
    seed: int,
) -> Predictor:
    """Open the task generator: the experience model's weights with another prompt, unless the recipe names a model."""
    asked = experience.model_copy(update={"top_p": 1.0})
    if recipe.generator_model:
        return open_chat_predictor(recipe.generator_model, asked, seed)
    return open_predictor(experience_model, engine, asked, seed, VARIATION_TOKENS)


def generate(generator: Predictor, tasks: Sequence[AgentTask], temperature: float) -> list[AgentTask]:
    """Return one variation of each task, with a first state, as the generator wrote it."""
    texts = generator.vary(tasks, temperature)
    return [_variation(task, text) for task, text in zip(tasks, texts, strict=True)]


def _variation(task: AgentTask, text: str) -> AgentTask:
    instruction, _, state = text.partition("[state]")
    name = f"{task.family}/generated/{digest_of(text)[:12]}"
    return replace(
        task, task_id=name, instruction=instruction.strip(), initial_state=state.strip("\n"), parent_id=task.task_id
    )


def select(
    candidates: Sequence[AgentTask], known: Sequence[AgentTask], environment: RealEnvironment
) -> tuple[list[AgentTask], int]:
    """Return the candidates that are well-formed, feasible and new, and the number of refused ones.

    Differs: the paper selects by a prompt to an LLM; here the environment's rules decide.
    """
    seen = {(task.instruction, task.initial_state) for task in known}
    chosen: list[AgentTask] = []
    for candidate in candidates:
        content = (candidate.instruction, candidate.initial_state)
        if content not in seen and environment.task_error(candidate) is None:
            seen.add(content)
            chosen.append(candidate)
    return chosen, len(candidates) - len(chosen)
