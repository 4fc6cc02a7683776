"""Reasoning traces from ScienceWorld's own text: the offline teacher (paper, section 4.2 and C.1).

A trace copies the state's descriptions of the things that are acted on, or says that there are none, and whether the
room to go to is known. Focusing on a wrong thing loses, so a focus also shows the request. Moving a thing wins only if
it is, or holds, the last focus, and the place is the one in the task, so a move also shows whether they are.

Example for `open door to kitchen`: in hallway. door to kitchen closed. works.
For `move dove egg to red box`: in kitchen. dove egg. red box. focus dove egg, moved. red box, asked. wins.

Differs: the paper uses a strong teacher LLM; models/experience/teacher.py does that.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from infra.environments.scienceworld.named import called, things_about
from infra.environments.scienceworld.view import NOTHING, REFUSED
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_GO = re.compile(r"^(?P<verb>go|teleport) (?:to )?(?P<place>.+)$")
_MOVE = re.compile(r"^move (?P<thing>.+) to (?P<place>.+)$")


class FactsAnnotator:
    """Annotator that explains every transition of a ScienceWorld trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """Return one reasoning trace per turn."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Return evidence and verdict for one transition."""
    lines = lines_of(turn.state)
    return ". ".join([f"in {lines.get('room', 'no room')}", *_evidence(task, turn.action, lines), _verdict(turn)]) + "."


def _evidence(task: AgentTask, action: str, lines: Mapping[str, str]) -> Iterator[str]:
    going, moving = _GO.match(action), _MOVE.match(action)
    if not going or going["verb"] == "go":
        yield from things_about(action, lines)
    if going:
        yield f"{going['place']} {'known' if going['place'] in lines else 'new'}"
    if action.startswith("focus "):
        yield f"asked: {task.instruction.partition('.')[0]}"
    if moving:
        focus, held = lines.get("focus", NOTHING), [moving["thing"], *things_about(moving["thing"], lines)]
        yield f"focus {focus}, {'moved' if called(focus.split(), held) else 'not moved'}"
        yield f"{moving['place']}, {'asked' if moving['place'] in task.instruction else 'not asked'}"


def _verdict(turn: Turn) -> str:
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "refused" if lines_of(turn.step.state).get("said", "").startswith(REFUSED) else "works"
