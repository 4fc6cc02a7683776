"""Reasoning traces from what ScienceWorld says: the offline teacher (paper, section 4.2 and C.1).

A trace copies what the state says of the things that are acted on. To focus on a wrong thing loses, so what is asked for is
copied there.

Example, of `open door to kitchen`: in hallway. doors: A door to the kitchen (that is closed). works.

Differs: the paper asks a strong teacher LLM; models/teacher.py does that.
"""

from collections.abc import Sequence

from infra.environments.scienceworld.view import REFUSED, things_about
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of


class ScienceworldAnnotator:
    """Explains every transition of a ScienceWorld trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Evidence and verdict for one transition."""
    lines = lines_of(turn.state)
    evidence = [f"in {lines.get('room', 'no room')}", *things_about(turn.action, lines)]
    if turn.action.startswith("focus "):
        evidence.append(f"asked: {task.instruction}")
    return ". ".join([*evidence, _verdict(turn)]) + "."


def _verdict(turn: Turn) -> str:
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "refused" if lines_of(turn.step.state).get("said", "").startswith(REFUSED) else "works"
