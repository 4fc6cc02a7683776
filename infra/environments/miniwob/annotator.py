"""Reasoning traces from what the pages say: the offline teacher (paper, section 4.2 and C.1).

A trace names the thing that is acted on, what is typed or selected there, and what else a choice lay between: the other links or
buttons, and before anything that may end a task what was filled in. Of each it says whether it is asked for by its name, which
a small model finds again more easily than it compares two sentences, and learns to look for only where the answer is mostly no.
Where a task is lost, it says what was wrong.

Example, of `click [11]`: [11] button: "Login", asked. [7] textbox: "keneth", asked. [10] textbox: "91", not asked, wrong. loses.

Differs: the paper asks a strong teacher LLM; models/experience/teacher.py does that.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from infra.environments.miniwob.view import TICKED, name_in, quoted, role_of, text_in
from infra.environments.verdicts import verdict
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_TARGET = re.compile(r"^\w+ (\[\d+\])")
_A_PLACE = re.compile(r"\b\d+(?:st|nd|rd|th)\b")
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_ALSO_CALLED = {"Close": "x"}
"""Instructions say what a button shows, pages what it is for."""
_FILLED_IN = ("textbox", "checkbox", "radio", "combobox")
"""Roles that hold something, and that end no task by being filled."""
_FLAGS = {True: "asked", False: "not asked"}
_CHOSEN = ("link", "button")
"""Roles of which one is the right one."""


class FactsAnnotator:
    """Explains every transition of a MiniWoB++ trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Evidence and verdict for one transition."""
    page = _Page(lines_of(turn.state), task.instruction)
    target = _target(turn.action, page.lines)
    if not target:
        return f"no such thing here. {verdict(turn)}."
    lost = turn.step.done and not turn.step.success
    mistaken = lost and page.asked(target) is False
    weighed = [page.said(target, mistaken), *_typed(turn.action, task.instruction)]
    if not target.endswith(_FILLED_IN):
        weighed += [page.said(rival) for rival in page.rivals(target)]
        weighed += [page.said(one, lost and not mistaken and page.is_wrong(one)) for one in page.filled_in]
    return ". ".join([*weighed, verdict(turn)]) + "."


def _typed(action: str, instruction: str) -> list[str]:
    """What is put into a textbox, or chosen."""
    text = text_in(action)
    return [f"{quoted(text)}, {_FLAGS[_has(instruction, text)]}"] if text else []


@dataclass(frozen=True, slots=True)
class _Page:
    """What can be said of its lines, each by its name, in view of an instruction."""

    lines: Mapping[str, str]
    instruction: str

    def said(self, line: str, wrong: bool = False) -> str:
        """Its name, whether that is asked for, whether it is ticked, and whether it is what was wrong.

        Asked comes before ticked: what is ticked is asked for so often that a model would look no further.
        """
        place = [self.place(line)] if self.goes_by_place(line) else []
        asked = self.asked(line)
        flags = [] if asked is None else [_FLAGS[asked]]
        ticked = re.findall(r", ((?:un)?checked)", self.lines[line]) if line.endswith(TICKED) else []
        return ", ".join([f"{line}: {quoted(self.name(line))}", *place, *flags, *ticked, *(["wrong"] if wrong else [])])

    def asked(self, line: str) -> bool | None:
        """Whether the instruction has its name, or its place where it speaks of places; None if it has neither."""
        if self.goes_by_place(line):
            return _has(self.instruction, self.place(line))
        name = self.name(line)
        return _has(self.instruction, _ALSO_CALLED.get(name, name)) if name else None

    def name(self, line: str) -> str:
        return name_in(self.lines[line])

    def goes_by_place(self, line: str) -> bool:
        return not self.name(line) and _A_PLACE.search(self.instruction) is not None

    def place(self, line: str) -> str:
        """Among the lines of its role: 1st, 2nd."""
        place = [other for other in self.lines if role_of(other) == role_of(line)].index(line) + 1
        return f"{place}{_ENDINGS.get(place, 'th')}"

    def rivals(self, line: str) -> list[str]:
        """The other links or buttons."""
        return [one for one in self.lines if one != line and one.endswith(_CHOSEN) and role_of(one) == role_of(line)]

    @property
    def filled_in(self) -> list[str]:
        return [one for one in self.lines if one.endswith(_FILLED_IN)]

    def is_wrong(self, line: str) -> bool:
        """Filled in otherwise than it is asked for."""
        wanted = self.asked(line) is True
        return wanted == (", unchecked" in self.lines[line]) if line.endswith(TICKED) else not wanted


def _has(instruction: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", instruction, re.IGNORECASE) is not None


def _target(action: str, lines: Mapping[str, str]) -> str:
    """The name of the line that an action is about, which for a key is where the focus is; empty if there is none."""
    if action.startswith("press "):
        return next((name for name, value in lines.items() if value.endswith(", focused")), "")
    match = _TARGET.match(action)
    return next((name for name in lines if match and name.startswith(f"{match[1]} ")), "")
