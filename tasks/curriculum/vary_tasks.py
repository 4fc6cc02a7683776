"""Vary the agent tasks at the edge of the policy's ability (paper, section 4.3 and prompts C.2).

in:  the pool of tasks, their reward entropies, the task generator
out: the pool with new variations
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from infra.context import run_context
from infra.environments.by_name import open_environment
from models.experience.predictors import Predictor
from models.experience.task_selector import TaskSelector
from models.methods.curricula import tasks_to_vary
from schemas.ports import RealEnvironment
from schemas.recipes.digests import digest_of
from schemas.recipes.learning import CurriculumRecipe
from schemas.recipes.networks import VARIATION_TOKENS, EngineRecipe, ExperienceRecipe
from schemas.recipes.recipe import EnvironmentRecipe
from schemas.records import AgentTask, Reference
from tasks.playing.groups import seed_of_round
from tasks.running.artifacts import get_tasks, put_tasks
from tasks.running.device import use_threads
from tasks.running.predictors import open_chat_predictor, open_endpoint, open_predictor
from tasks.running.versioned import versioned_task


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
    """Return the pool with selected variations of its high-entropy tasks added.

    Args:
        pool: All tasks.
        state: State of the curriculum, with the tasks' reward entropies.
        experience_model: Model whose weights also generate tasks, unless the recipe names another.
        recipe: Number of tasks to vary, of candidates for each, and who selects.
        experience: What the generator reads and writes.
        environment: Environment whose rules refuse candidates.
        engine: Section of the engine that samples.
        seed: Seed of the recipe.
        round: Number of the round, counted from 0.
    """
    use_threads()
    tasks = get_tasks(pool)
    edge = tasks_to_vary(
        tasks, state.get("entropies", {}), recipe.variations_per_round, generated=recipe.vary_generated
    )
    if not edge:
        return pool
    with run_context().display.stage("vary tasks"):
        generator = _generator(experience_model, recipe, experience, engine, seed_of_round(seed, round))
        candidates = generate(generator, edge, recipe)
        acceptable, refused = select(candidates, tasks, open_environment(environment))
        chosen = _best(acceptable, edge, recipe)
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


def generate(generator: Predictor, tasks: Sequence[AgentTask], recipe: CurriculumRecipe) -> list[AgentTask]:
    """Return the candidates of each task, one after the other, with first states, as the generator wrote them."""
    asked = [task for task in tasks for _ in range(recipe.candidates_per_task)]
    texts = generator.vary(asked, recipe.generator_temperature)
    return [_variation(task, text) for task, text in zip(asked, texts, strict=True)]


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

    Differs: the paper selects by a prompt to an LLM alone; here the environment's rules decide first.
    """
    seen = {(task.instruction, task.initial_state) for task in known}
    chosen: list[AgentTask] = []
    for candidate in candidates:
        content = (candidate.instruction, candidate.initial_state)
        if content not in seen and environment.task_error(candidate) is None:
            seen.add(content)
            chosen.append(candidate)
    return chosen, len(candidates) - len(chosen)


def _best(acceptable: Sequence[AgentTask], parents: Sequence[AgentTask], recipe: CurriculumRecipe) -> list[AgentTask]:
    """Return one of the acceptable candidates of each task: the first, or the one that a model selects, if any."""
    if recipe.candidates_per_task == 1:
        return list(acceptable)
    variations: dict[str, list[AgentTask]] = defaultdict(list)
    for one in acceptable:
        variations[one.parent_id].append(one)
    if recipe.select_by == "rules":
        return [several[0] for several in variations.values()]
    questions = [(parent, variations[parent.task_id]) for parent in parents if parent.task_id in variations]
    chosen = TaskSelector(open_endpoint(recipe.generator_model)).select(questions)
    run_context().display.say(f"selected {sum(map(bool, chosen))} of {len(questions)} sets of candidates")
    return [one for one in chosen if one]
