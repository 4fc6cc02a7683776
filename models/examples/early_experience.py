"""Examples from alternatives to demonstrated actions: implicit world modelling and self-reflection.

Source: Early Experience, arXiv 2510.08558, sections 4.2 and 4.3.
"""

from models.examples.supervised import experience_example, situations_of
from models.experience.plain_experience import PlainExperience
from models.text.policies.plain_policy import PlainPolicy
from models.text.prompts import PromptFormat
from models.training.sft import Example
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import Trajectory, Turn


def consequence_example(format: PromptFormat, alternative: Trajectory, history_length: int) -> Example:
    """Return the last step of an episode, with changed lines and outcome as the target: -log p(s' | s, a).

    Differs: the target is the lines of the state that change, and not the whole state.
    """
    last = len(alternative.turns) - 1
    situation = situations_of(alternative, ExperienceRecipe(history_length=history_length))[last]
    return experience_example(PlainExperience(format), situation, alternative, last, with_reasoning=False)


def reflection_example(format: PlainPolicy, demonstration: Trajectory, alternative: Trajectory) -> Example | None:
    """Return why the demonstrated action is better than another one, and that action: -log p(c, a | s).

    None if the other action wins, too, or its state is not one of the demonstration's.

    Differs: the reflection joins the reasoning traces of both actions, where the paper asks the initial policy to write
        it; and it is a second way to answer, after [think]. A policy that is asked for an action takes it at once.

    Args:
        format: What the policy reads and writes.
        demonstration: Demonstration, with reasoning.
        alternative: Episode along it that ends with another action, with reasoning.
    """
    other = alternative.turns[-1]
    number = next((place for place, turn in enumerate(demonstration.turns) if turn.state == other.state), None)
    if number is None or alternative.success:
        return None
    taken = demonstration.turns[number]
    prompt = format.reflection_prompt(demonstration.task, demonstration.history(number), taken.state)
    return Example.of((prompt, False), (format.reflection(reflection(taken, other), taken.action), True))


def reflection(demonstrated: Turn, other: Turn) -> str:
    """Return what speaks against the other action, then what speaks for the demonstrated one."""
    return " ".join(f"{turn.action}: {turn.step.reasoning}".strip() for turn in (other, demonstrated))
