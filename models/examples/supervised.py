"""SFT examples from annotated trajectories, for the experience model, the policy and the task generator."""

import random
from collections.abc import Sequence
from dataclasses import replace

from models.experience.experience_format import ExperienceFormat, history_shown
from models.retrieval.replay_index import ReplayIndex
from models.text.policies.policy_format import PolicyFormat, Shown, is_malformed
from models.text.prompts import PromptFormat, TransitionQuery
from models.training.sft import Example
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import AgentTask, Trajectory


def situations_of(trajectory: Trajectory, recipe: ExperienceRecipe) -> list[TransitionQuery]:
    """Return the situation before each turn, still without demonstrations."""
    return [
        TransitionQuery(
            trajectory.task, turn.state, turn.action, history_shown(recipe, trajectory.history(i)), turn=i + 1
        )
        for i, turn in enumerate(trajectory.turns)
    ]


def grounded(
    trajectory: Trajectory,
    trajectory_id: str,
    index: ReplayIndex,
    recipe: ExperienceRecipe,
    k: int,
    dropping: random.Random,
) -> list[TransitionQuery]:
    """Return the situations of a trajectory with up to k demonstrations each, none from the trajectory itself.

    Shares of the situations have none, or those of other tasks, as the recipe says.

    Args:
        trajectory: Trajectory to learn from.
        trajectory_id: Its id in the index.
        index: Index of past transitions.
        recipe: Section with the history that is shown, and both shares.
        k: Number of demonstrations.
        dropping: Source of randomness for the shares.
    """
    situations = [replace(one, trajectory_id=trajectory_id) for one in situations_of(trajectory, recipe)]
    found = index.retrieve(situations, k)
    if recipe.other_tasks_share:
        places = [place for place in range(len(found)) if dropping.random() < recipe.other_tasks_share]
        of_others = index.retrieve([situations[place] for place in places], k, of_other_tasks=True) if places else []
        for place, demonstrations in zip(places, of_others, strict=True):
            found[place] = demonstrations
    if recipe.demonstration_dropout:
        found = [[] if dropping.random() < recipe.demonstration_dropout else demos for demos in found]
    return [replace(one, demonstrations=tuple(demos)) for one, demos in zip(situations, found, strict=True)]


def experience_example(
    format: ExperienceFormat,
    situation: TransitionQuery,
    trajectory: Trajectory,
    turn: int,
    *,
    with_reasoning: bool = True,
) -> Example:
    """Return one transition, with reasoning, next state and outcome as the target (paper, Eq. 5)."""
    moment = trajectory.turns[turn]
    target = format.prediction(moment.state, moment.step, with_reasoning=with_reasoning)
    shown = format.situation(situation)
    return Example.of((shown.ids, False), (target, True), limits=shown.limits)


def policy_examples(format: PolicyFormat, trajectory: Trajectory) -> list[Example]:
    """Return one episode as the policy sees it, in one stream or one per turn, with its answers as the target.

    A thought is the agent's own, or else the reasoning trace of the turn. Answers without an action are not learnt.
    """
    turns = [
        (_shown(format, trajectory, number), format.answer(turn.action, turn.thought or turn.step.reasoning))
        for number, turn in enumerate(trajectory.turns)
        if not is_malformed(turn.action)
    ]
    return [_of_turns(turns)] if format.remembers_episode else [_of_turns([turn]) for turn in turns]


def _shown(format: PolicyFormat, trajectory: Trajectory, number: int) -> Shown:
    """Return what the policy is shown in a turn, after what it has in its stream."""
    state = trajectory.turns[number].state
    shown = format.next_state(state) if number else None
    return shown or format.prompt(trajectory.task, trajectory.history(number), state)


def _of_turns(turns: Sequence[tuple[Shown, list[int]]]) -> Example:
    pieces = [piece for shown, answer in turns for piece in ((shown.ids, False), (answer, True))]
    return Example.of(*pieces, limits=[limit for shown, _ in turns for limit in shown.limits])


def _episode_example(format: PromptFormat, trajectory: Trajectory) -> Example:
    pieces = [(format.task(trajectory.task), False)]
    for turn in trajectory.turns:
        pieces += [(format.state(turn.state), False), (format.action(turn.action), True)]
    return Example.of(*pieces)


def language_example(format: PromptFormat, trajectory: Trajectory, max_turns: int) -> Example:
    """Return an episode's start, with all after its first state as the target: states repeat, which teaches copying."""
    example = _episode_example(format, replace(trajectory, turns=trajectory.turns[:max_turns]))
    first = example.is_target.index(True)
    return Example(example.ids, [place >= first for place in range(len(example.ids))])


def variation_example(
    format: ExperienceFormat, task: AgentTask, state: str, varied: AgentTask, varied_state: str
) -> Example:
    """Return one task turned into another of the same family, for the task generator."""
    shown = format.variation_prompt(task, state)
    return Example.of((shown.ids, False), (format.variation(varied, varied_state), True), limits=shown.limits)
