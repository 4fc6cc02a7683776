"""Reasoning traces from ALFWorld's own words: the offline teacher (paper, section 4.2 and C.1).

A trace says first whether the state accepts the action, then what was done before to the thing it is about, and what the
task asks for where that decides, and ends with a verdict.

Example, of `move mug 1 to desk 1`: accepted. mug 1 was cleaned. asked: put a clean mug in desk. wins.

Differs: the paper asks a strong teacher LLM; models/teacher.py does that.
"""

import re
from collections.abc import Sequence

from infra.environments.alfworld.view import ALWAYS, REFUSED, actions_in
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_DONE_TO = {"heat": "heated", "cool": "cooled", "clean": "cleaned", "slice": "sliced"}
_CHANGES_A_THING = re.compile(r"^(heat|cool|clean|slice) (.+) with ")
_MAY_END = re.compile(r"^(?:move (?P<moved>.+) to |use )")


class AlfworldAnnotator:
    """Explains every transition of an ALFWorld trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn, one.turns[:i]) for i, turn in enumerate(one.turns)] for one in trajectories]


def explain(task: AgentTask, turn: Turn, earlier: Sequence[Turn]) -> str:
    """Evidence and verdict for one transition, with what came before it."""
    evidence = [_acceptance(turn)]
    if ending := _MAY_END.match(turn.action):
        evidence += [*_condition(ending["moved"], earlier), f"asked: {task.instruction}"]
    return ". ".join([*evidence, _verdict(turn)]) + "."


def _acceptance(turn: Turn) -> str:
    accepted = turn.action in ALWAYS or turn.action in actions_in(lines_of(turn.state))
    return "accepted" if accepted else "not accepted here"


def _condition(thing: str | None, earlier: Sequence[Turn]) -> list[str]:
    """What was done to a thing, the last of it."""
    changes = [match for turn in earlier if _worked(turn) and (match := _CHANGES_A_THING.match(turn.action))]
    done = [_DONE_TO[match[1]] for match in changes if match[2] == thing]
    return [f"{thing} was {done[-1]}"] if done else []


def _worked(turn: Turn) -> bool:
    return lines_of(turn.step.state).get("saw") != REFUSED


def _verdict(turn: Turn) -> str:
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "works" if _worked(turn) else "refused"
