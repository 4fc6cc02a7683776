"""SFT examples from annotated trajectories, for the experience model, the policy and the task generator."""

from dataclasses import replace

from models.text.policy_format import PolicyFormat, is_malformed
from models.text.prompts import PromptFormat, TransitionQuery, last_actions
from models.training.sft import Example
from schemas.records import AgentTask, Trajectory
from schemas.state_text import changes_between


def situations_of(trajectory: Trajectory, history_length: int) -> list[TransitionQuery]:
    """Return the situation before each turn, still without demonstrations."""
    actions = trajectory.actions
    return [
        TransitionQuery(trajectory.task, turn.state, turn.action, last_actions(actions[:i], history_length))
        for i, turn in enumerate(trajectory.turns)
    ]


def experience_example(
    format: PromptFormat, situation: TransitionQuery, trajectory: Trajectory, turn: int, *, with_reasoning: bool = True
) -> Example:
    """Return one transition, with reasoning, changed lines and outcome as the target (paper, Eq. 5)."""
    step = trajectory.turns[turn].step
    changes = changes_between(trajectory.turns[turn].state, step.state)
    return Example.of(
        (format.situation(situation), False), (format.prediction(step, changes, with_reasoning=with_reasoning), True)
    )


def policy_examples(format: PolicyFormat, trajectory: Trajectory) -> list[Example]:
    """Return one episode as the policy sees it, in one stream or one per turn, with its answers as the target.

    A thought is the agent's own, or else the reasoning trace of the turn. Answers without an action are not learnt.
    """
    turns = [
        (
            (_shown(format, trajectory, number), False),
            (format.answer(turn.action, turn.thought or turn.step.reasoning), True),
        )
        for number, turn in enumerate(trajectory.turns)
        if not is_malformed(turn.action)
    ]
    if format.remembers_episode:
        return [Example.of(*(piece for turn in turns for piece in turn))]
    return [Example.of(*turn) for turn in turns]


def _shown(format: PolicyFormat, trajectory: Trajectory, number: int) -> list[int]:
    """Return what the policy is shown in a turn, after what it has in its stream."""
    state = trajectory.turns[number].state
    shown = format.next_state(state) if number else None
    return (shown or format.prompt(trajectory.task, trajectory.history(number), state)).ids


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
    format: PromptFormat, task: AgentTask, state: str, varied: AgentTask, varied_state: str
) -> Example:
    """Return one task turned into another of the same family, for the task generator."""
    return Example.of((format.variation_prompt(task, state), False), (format.variation(varied, varied_state), True))
