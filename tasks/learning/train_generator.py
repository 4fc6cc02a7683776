"""Train the task generator on its own tasks, by what they were worth (SPICE, arXiv 2510.24684; GenEnv).

in:  task generator, pool of tasks, groups dreamt since its last training
out: task generator
"""

from collections.abc import Sequence

from models.examples.supervised import variation_example
from models.experience.experience_format import ExperienceFormat
from models.experience.experience_formats import open_experience_format
from models.methods.generators import Generator, TrainedOptions
from models.methods.groupings import rolled_out_together
from models.methods.method import open_method
from models.training.sft import Example
from schemas.recipes.learning import CurriculumRecipe
from schemas.recipes.networks import ExperienceRecipe, SftRecipe, TrainingRecipe
from schemas.records import AgentTask, Reference, Trajectory
from tasks.learning.run_training import fine_tuned
from tasks.running.artifacts import get_frozen_model, get_tasks, get_trajectories, put_model
from tasks.running.versioned import versioned_task


@versioned_task
def train_generator(
    generator: Reference,
    pool: Reference,
    groups: list[Reference],
    recipe: CurriculumRecipe,
    experience: ExperienceRecipe,
    training: TrainingRecipe,
    seed: int,
) -> Reference:
    """Return the generator after training on the tasks that it wrote; as it was if none was worth anything.

    Args:
        generator: Model that varied the tasks.
        pool: All tasks, among them the parents of the generated ones.
        groups: Dreamt groups, of generated tasks and others.
        recipe: Section that names the reward.
        experience: Section that says what the generator reads and writes.
        training: Whether all weights are trained, or adapters.
        seed: Seed of the order of examples.
    """
    method = open_method(Generator, recipe.generator)
    shares = shares_won(get_trajectories(*groups))
    parents = {task.task_id: task for task in get_tasks(pool)}
    format = open_experience_format(get_frozen_model(generator).format, experience)
    assert isinstance(method.options, TrainedOptions)
    examples = [
        example
        for task, share in shares
        if task.parent_id in parents
        for example in _copies(
            format, parents[task.parent_id], task, round(method.worth(share) * method.options.max_copies)
        )
    ]
    if not examples:
        return generator
    sft = SftRecipe(epochs=method.options.epochs, learning_rate=method.options.learning_rate)
    trained = fine_tuned(generator, examples, sft, training, seed, "task generator")
    return put_model(trained, generator, num_tasks=len(shares), num_examples=len(examples))


def shares_won(episodes: Sequence[Trajectory]) -> list[tuple[AgentTask, float]]:
    """Return each generated task whose group is whole, with the share of its episodes that won."""
    groups = rolled_out_together([one for one in episodes if one.task.generated and not one.task.is_snapshot])
    whole = [group for group in groups if not any(one.failure for one in group)]
    return [(group[0].task, sum(one.success for one in group) / len(group)) for group in whole]


def _copies(format: ExperienceFormat, parent: AgentTask, task: AgentTask, count: int) -> list[Example]:
    return [variation_example(format, parent, parent.initial_state, task, task.initial_state)] * count
