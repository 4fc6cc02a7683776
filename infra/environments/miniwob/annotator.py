"""Reasoning traces from what the pages say: the offline teacher (paper, section 4.2 and C.1).

A trace names the thing that is acted on; before anything that may end a task it says what was filled in. Of each it says
whether it is asked for by its name, which is what most verdicts come down to: a small model finds a word again more easily
than it compares two sentences.

Example, of `click [11]`: [11] button: Login, not asked. [7] textbox: keneth, asked. [10] textbox: 91YP, asked. wins.

Differs: the paper asks a strong teacher LLM; models/teacher.py does that.
"""

import re
from collections.abc import Sequence

from infra.environments.miniwob.view import EMPTY
from infra.environments.verdicts import verdict
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_TARGET = re.compile(r"^\w+ (\[\d+\])")
_AFTER_ITS_NAME = re.compile(r"(?:, (?:un)?checked)?(?:, focused)?$")
_AFTER_A_CHOICE = re.compile(r" of .*$")
"""Of a thing, in its line's value: see Element.value."""
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
    if not target:
        return f"no such thing here. {verdict(turn)}."
    shown = [target]
    if not target.endswith(_FILLED_IN):
        shown += [name for name in lines if name.endswith(_FILLED_IN)]
    evidence = [f"{name}: {lines[name]}{_asked(name, lines[name], task.instruction)}" for name in shown]
    return ". ".join([*evidence, verdict(turn)]) + "."


def _asked(line: str, value: str, instruction: str) -> str:
    """Whether the instruction has the name that a line's value begins with; nothing of what is empty."""
    after = _AFTER_A_CHOICE if line.endswith("combobox") else _AFTER_ITS_NAME
    name = after.sub("", value)
    if name == EMPTY:
        return ""
    return ", asked" if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", instruction, re.IGNORECASE) else ", not asked"


def _target(action: str, lines: dict[str, str]) -> str:
    """The name of the line that an action is about, which for a key is where the focus is; empty if there is none."""
    if action.startswith("press "):
        return next((name for name, value in lines.items() if value.endswith(", focused")), "")
    match = _TARGET.match(action)
    return next((name for name in lines if match and name.startswith(f"{match[1]} ")), "")
