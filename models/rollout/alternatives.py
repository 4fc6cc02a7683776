"""Alternatives: episodes that follow a demonstration and end with another action (Early Experience, arXiv 2510.08558)."""

from collections.abc import Sequence
from dataclasses import replace

from models.measurement.calibration import as_episode, failed, replay
from models.rollout.proposals import Proposals
from schemas.ports import Environment
from schemas.records import Step, Trajectory

SOURCE = "alternative to a demonstration"
_NUM_SLOTS = 128
"""Maximum number of actions taken at a time in a dream."""


def forks(demonstrations: Sequence[Trajectory], proposals: Proposals) -> list[Trajectory]:
    """Return each demonstration up to each other action, whose step is not known yet: it is still the demonstrated one."""
    return [
        replace(one, turns=[*one.turns[:number], replace(turn, action=action)], tokens=(), source=SOURCE)
        for one, of_turns in zip(demonstrations, proposals, strict=True)
        for number, (turn, actions) in enumerate(zip(one.turns, of_turns, strict=True))
        for action in actions
    ]


def taken_for_real(asked: Sequence[Trajectory], environment: Environment) -> tuple[list[Trajectory], int]:
    """Return forks with the step that their last action leads to, and the number of real steps that it took.

    Each is played from its start. Those in which the environment failed, or went another way than the demonstration,
    are left out.
    """
    replays = replay(asked, environment) if asked else []
    episodes = [
        replace(as_episode(fork, steps), source=SOURCE, truncated=False)
        for fork, steps in zip(asked, replays, strict=True)
        if not failed(steps) and _reaches(fork, steps)
    ]
    return episodes, sum(map(len, replays))


def _reaches(fork: Trajectory, steps: Sequence[Step]) -> bool:
    """Return whether a replay went through the states of the demonstration."""
    return [step.state for step in steps[:-1]] == [turn.state for turn in fork.turns[1:]]


def taken_in_a_dream(asked: Sequence[Trajectory], dream: Environment) -> list[Trajectory]:
    """Return forks with the step that a dream predicts for their last action, marked as dreamt; broken ones left out."""
    parts = (asked[start : start + _NUM_SLOTS] for start in range(0, len(asked), _NUM_SLOTS))
    return [episode for part in parts for episode in _dreamt(part, dream) if not episode.failure]


def _dreamt(asked: Sequence[Trajectory], dream: Environment) -> list[Trajectory]:
    dream.reset({slot: replace(one.task, initial_state=one.turns[-1].state) for slot, one in enumerate(asked)})
    steps = dream.step({slot: one.turns[-1].action for slot, one in enumerate(asked)})
    return [
        replace(
            one,
            origin="dream",
            turns=[*one.turns[:-1], replace(one.turns[-1], step=steps[slot])],
            failure=steps[slot].failure,
            truncated=False,
        )
        for slot, one in enumerate(asked)
    ]
