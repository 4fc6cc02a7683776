"""Reasoning traces from what the pages say: the offline teacher (paper, section 4.2 and C.1).

A trace names the thing that is acted on; before anything that may end a task it says what was filled in and what is asked for.

Example, of `click [11]`: [11] button: Login. [7] textbox: keneth. [10] textbox: 91YP. asked: Enter the username ... wins.

Differs: the paper asks a strong teacher LLM; models/teacher.py does that.
"""

import re
from collections.abc import Sequence

from infra.environments.verdicts import verdict
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_TARGET = re.compile(r"^\w+ (\[\d+\])")
_FILLED_IN = ("textbox", "checkbox", "radio", "combobox")
"""Roles that hold something, and that end no task by being filled."""


class MiniwobAnnotator:
    """Explains every transition of a MiniWoB++ trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Evidence and verdict for one transition."""
    lines = lines_of(turn.state)
    target = _target(turn.action, lines)
    evidence = [f"{target}: {lines[target]}" if target else "no such thing here"]
    if target and not target.endswith(_FILLED_IN):
        evidence += [f"{name}: {value}" for name, value in lines.items() if name.endswith(_FILLED_IN)]
        evidence.append(f"asked: {task.instruction}")
    return ". ".join([*evidence, verdict(turn)]) + "."


def _target(action: str, lines: dict[str, str]) -> str:
    """The name of the line that an action is about, which for a key is where the focus is; empty if there is none."""
    if action.startswith("press "):
        return next((name for name, value in lines.items() if value.endswith(", focused")), "")
    match = _TARGET.match(action)
    return next((name for name in lines if match and name.startswith(f"{match[1]} ")), "")
