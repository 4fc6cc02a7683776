"""Judge what states are worth: a model learns it from dreams that went on from states, and then says it of others.

in:  experience model, values of states that were dreamt, groups of a round
out: judge of states; values of the states that an advantage asks for
"""

from infra.context import objects
from models.examples.state_values import ValuedState, chance, outcome_examples, question
from models.methods.advantages import Advantage
from models.methods.advantages.stepwiser import StepwiserOptions
from models.methods.groupings import Grouping
from models.methods.method import open_method
from models.training.trained_logprobs import logprobs_by_group
from schemas.recipes.learning import RlRecipe
from schemas.recipes.networks import SftRecipe, TrainingRecipe
from schemas.records import Reference
from tasks.learning.run_training import fine_tuned
from tasks.playing.value_states import put_values
from tasks.running.artifacts import get_frozen_model, get_trajectories, put_model
from tasks.running.device import use_threads
from tasks.running.versioned import versioned_task


@versioned_task
def teach_step_judge(
    experience_model: Reference, values: list[Reference], rl: RlRecipe, training: TrainingRecipe, seed: int
) -> Reference | None:
    """Return the experience model fine-tuned to say how likely a state is to be won; None if all dreams ended alike.

    Args:
        experience_model: Model to start from.
        values: Values of states, by dreams that went on from them.
        rl: Section that names the advantage, with the options of its judge.
        training: Whether all weights are trained, or adapters.
        seed: Seed of the order of examples.
    """
    options = open_method(Advantage, rl.advantage).options
    assert isinstance(options, StepwiserOptions)
    states = [ValuedState(*row) for one in values for row in objects().get_json(one)]
    format = get_frozen_model(experience_model).format
    examples = outcome_examples(format, states, options.num_continuations)
    if not examples:
        return None
    sft = SftRecipe(epochs=options.epochs, learning_rate=options.learning_rate)
    trained = fine_tuned(experience_model, examples, sft, training, seed, "step judge")
    return put_model(trained, experience_model, num_states=len(states), num_examples=len(examples))


@versioned_task
def judge_states(groups: list[Reference], judge: Reference, rl: RlRecipe, training: TrainingRecipe) -> Reference:
    """Store what the judge says of each state that the advantage needs a value of.

    Args:
        groups: Trajectories of the round's groups.
        judge: Judge of states.
        rl: Section that names advantage and grouping.
        training: Number of tokens to compute at a time.
    """
    use_threads()
    advantage, grouping = open_method(Advantage, rl.advantage), open_method(Grouping, rl.grouping)
    asked = advantage.states_to_value(grouping.groups(get_trajectories(*groups)))
    model = get_frozen_model(judge)
    questions = [question(model.format, task, number) for number, task in enumerate(asked)]
    answered = logprobs_by_group(model.network, questions, 1.0, training.tokens_per_batch)
    said = {group.group_id: chance(model.format, logprobs) for group, logprobs in answered}
    return put_values(asked, {(one.parent_id, one.initial_state): said[str(n)] for n, one in enumerate(asked)})
