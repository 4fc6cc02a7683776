"""Reasoning traces from ALFWorld's own words: the offline teacher (paper, section 4.2 and C.1).

A trace says where the agent is and what it holds, what is known of the thing and the place that an action is about, whether
the state accepts it, whether the task asks for these where that decides, and ends with a verdict.

Example, of `move mug 1 to desk 1`: at desk 1. holding mug 1. mug 1: cleaned. desk 1: pen 2. accepted. mug asked. desk asked.
wanted cleaned. wins.

Differs: the paper asks a strong teacher LLM; models/teacher.py does that.
"""

import re
from collections.abc import Sequence

from infra.environments.alfworld.view import ALWAYS, REFUSED, actions_in
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_THING = re.compile(r"[a-z]+ \d+")
_MAY_END = ("move ", "use ")
"""How the actions begin that may be the last."""
_WANTED = {"clean": "cleaned", "heat": "heated", "hot": "heated", "cool": "cooled", "two": "two"}
"""What is to be done besides, by the word of a task that says so."""


class AlfworldAnnotator:
    """Explains every transition of an ALFWorld trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Evidence and verdict for one transition."""
    lines = lines_of(turn.state)
    here = [f"at {lines['at']}", f"holding {lines['holding']}"]
    known = [f"{name}: {lines[name]}" for name in _THING.findall(turn.action) if name in lines]
    accepted = turn.action in ALWAYS or turn.action in actions_in(lines)
    asked = _request(task, turn, lines) if accepted and turn.action.startswith(_MAY_END) else []
    evidence = [*here, *known, "accepted" if accepted else "not accepted here", *asked]
    return ". ".join([*evidence, _verdict(turn)]) + "."


def _request(task: AgentTask, turn: Turn, lines: dict[str, str]) -> list[str]:
    """What of that which an action is about the task asks for, and what else it wants."""
    words = task.instruction.split(" ")
    kinds = dict.fromkeys(name.split(" ")[0] for name in _THING.findall(f"{lines['holding']} {turn.action}"))
    asked = [f"{kind} {'asked' if kind in words else 'not asked'}" for kind in kinds]
    return [*asked, *(f"wanted {what}" for word, what in _WANTED.items() if word in words)]


def _verdict(turn: Turn) -> str:
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "refused" if lines_of(turn.step.state).get("saw") == REFUSED else "works"
