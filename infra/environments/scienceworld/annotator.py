"""Reasoning traces from what ScienceWorld says: the offline teacher (paper, section 4.2 and C.1).

A trace copies what the state says of the things that are acted on, and whether one knows the room that one goes to. To focus
on a wrong thing loses, and what is moved wins only if it is what one focused on last: there a trace says that, and what the
task asks for.

Example, of `open door to kitchen`: in hallway. door to kitchen closed. works.
Of `move dove egg to red box`: in kitchen. dove egg. red box. focus dove egg. asked: Then, move it to the red box in the
kitchen. wins.

Differs: the paper asks a strong teacher LLM; models/teacher.py does that.
"""

import re
from collections.abc import Mapping, Sequence

from infra.environments.scienceworld.view import REFUSED, things_about
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_GO = re.compile(r"^(?:go|teleport) (?:to )?(.+)$")
_SENTENCE = re.compile(r"(?<=\.) ")


class ScienceworldAnnotator:
    """Explains every transition of a ScienceWorld trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Evidence and verdict for one transition."""
    lines = lines_of(turn.state)
    evidence = [f"in {lines.get('room', 'no room')}", *things_about(turn.action, lines)]
    return ". ".join([*evidence, *_what_decides(task, turn.action, lines), _verdict(turn)]) + "."


def _what_decides(task: AgentTask, action: str, lines: Mapping[str, str]) -> list[str]:
    """Beyond the things that are acted on."""
    first, *others = _SENTENCE.split(task.instruction.rstrip("."))
    if going := _GO.match(action):
        return [f"{going[1]} {'known' if going[1] in lines else 'new'}"]
    if action.startswith("focus "):
        return [f"asked: {first.rstrip('.')}"]
    if action.startswith("move "):
        asked = next((one for one in others if "move" in one), first)
        return [f"focus {lines.get('focus', 'unknown')}", f"asked: {asked.rstrip('.')}"]
    return []


def _verdict(turn: Turn) -> str:
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "refused" if lines_of(turn.step.state).get("said", "").startswith(REFUSED) else "works"
