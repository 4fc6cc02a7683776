"""Value the states of a round that an advantage asks about: the share of dreams from there that win.

in:  groups of a round, the policy that played them, experience model
out: values by task and state
"""

from collections.abc import Sequence

from infra.context import objects
from models.methods.advantages import Advantage, StateValues
from models.methods.groupings import Grouping
from models.methods.method import open_method
from schemas.recipes.learning import RlRecipe
from schemas.recipes.recipe import PlayRecipe
from schemas.records import AgentTask, Reference, Trajectory
from tasks.playing.groups import seed_of_round
from tasks.playing.play import dream_environment, play
from tasks.running.artifacts import get_trajectories
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task

_OTHER_DREAMS = 500_000_003
"""Seed offset between a round's dreams and those that go on from its states."""


@versioned_task
def value_states(
    groups: list[Reference],
    policy: Reference,
    experience_model: Reference,
    experience: list[Reference],
    recipe: PlayRecipe,
    rl: RlRecipe,
    round: int,
) -> Reference:
    """Dream from each state that the advantage needs a value of, and store the shares that won.

    Args:
        groups: Trajectories of the round's groups.
        policy: Policy that plays on; the one that played them.
        experience_model: Model that answers.
        experience: Trajectories that it may retrieve.
        recipe: Sections that decide how an episode goes.
        rl: Section that names advantage and grouping.
        round: Number of the round, counted from 0.
    """
    use_threads()
    advantage, grouping = open_method(Advantage, rl.advantage), open_method(Grouping, rl.grouping)
    asked = advantage.states_to_value(grouping.groups(get_trajectories(*groups)))
    seed, count = seed_of_round(recipe.seed, round) + _OTHER_DREAMS, advantage.num_continuations
    environment = dream_environment(experience_model, experience, recipe, seed)
    repeated = [task for task in asked for _ in range(count)]
    episodes = play("value states", policy, environment, "dream", repeated, recipe, rl.temperature, seed)
    found = values_of(asked, [episodes[start : start + count] for start in range(0, len(episodes), count)])
    return put_values(asked, found)


def put_values(asked: Sequence[AgentTask], found: StateValues) -> Reference:
    """Store the values of states, row by row: task id, instruction, state and value.

    Args:
        asked: States that an advantage asked for, as tasks that start there.
        found: Values by the id of each task's parent and the state.
    """
    keyed = [((one.parent_id, one.initial_state), one.instruction) for one in asked]
    rows = [
        [task_id, text, state, found[task_id, state]] for (task_id, state), text in keyed if (task_id, state) in found
    ]
    return objects().put_json(rows, "state values", num_states=len(asked), num_valued=len(rows))


def values_of(asked: Sequence[AgentTask], continuations: Sequence[Sequence[Trajectory]]) -> StateValues:
    """Return the share of each state's dreams that won, broken ones left out; none for a state whose dreams all broke."""
    found: StateValues = {}
    for task, episodes in zip(asked, continuations, strict=True):
        whole = [one.success for one in episodes if not one.failure]
        if whole:
            found[task.parent_id, task.initial_state] = sum(whole) / len(whole)
    return found
