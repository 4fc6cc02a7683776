"""Reasoning traces from what the pages say: the offline teacher (paper, section 4.2 and C.1).

Example for `click[buy now]`: accepted. chosen: red; large. asked: find me a red dress, size large. loses.

Differs: the paper uses a strong teacher LLM; models/experience/teacher.py does that. Here no trace says why a purchase
was wrong.
"""

from collections.abc import Sequence

from infra.environments.verdicts import verdict
from infra.environments.webshop.view import accepts, options
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_BUY = "click[buy now]"


class FactsAnnotator:
    """Annotator that explains every transition of a WebShop trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """Return one reasoning trace per turn."""
        return [[explain(one.task, turn, one.turns[:i]) for i, turn in enumerate(one.turns)] for one in trajectories]


def explain(task: AgentTask, turn: Turn, earlier: Sequence[Turn]) -> str:
    """Return evidence and verdict for one transition, given the turns before it."""
    evidence = ["accepted" if accepts(lines_of(turn.state), turn.action) else "not accepted here"]
    if turn.action == _BUY:
        evidence += [f"chosen: {'; '.join(_chosen(earlier)) or 'nothing'}", f"asked: {task.instruction}"]
    return ". ".join([*evidence, verdict(turn)]) + "."


def _chosen(turns: Sequence[Turn]) -> list[str]:
    return [name for turn in turns for name in options(lines_of(turn.state)) if turn.action == f"click[{name}]"]
