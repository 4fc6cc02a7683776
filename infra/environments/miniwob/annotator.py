"""Reasoning traces from what the pages say: the offline teacher (paper, section 4.2 and C.1).

A trace names the element of the action, the text that is typed or selected there, and the alternatives: the other links
or buttons, and, before an action that may end the task, the fields that were filled in. For each it says whether the
task requests its name. A small model finds this again more easily than it compares two sentences, and learns to look
for it only if the answer is mostly no. If the task is lost, the trace says what was wrong.

Example for `click [11]`: [11] button: "Login", asked. [7] textbox: "keneth", asked.
[10] textbox: "91", not asked, wrong. loses.

Differs: the paper uses a strong teacher LLM; models/experience/teacher.py does that.
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
"""Names in instructions, by names on pages: instructions say what a button shows, pages what it is for."""
_FILLED_IN = ("textbox", "checkbox", "radio", "combobox")
"""Roles that hold a value, and that end no task by being filled in."""
_FLAGS = {True: "asked", False: "not asked"}
_CHOSEN = ("link", "button")
"""Roles of which one element is the right one."""


class FactsAnnotator:
    """Annotator that explains every transition of a MiniWoB++ trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """Return one reasoning trace per turn."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Return evidence and verdict for one transition."""
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
    """Return the text that is typed or selected, and whether the task requests it; empty if there is none."""
    text = text_in(action)
    return [f"{quoted(text)}, {_FLAGS[_has(instruction, text)]}"] if text else []


@dataclass(frozen=True, slots=True)
class _Page:
    """Lines of a page by name, in view of an instruction."""

    lines: Mapping[str, str]
    instruction: str

    def said(self, line: str, wrong: bool = False) -> str:
        """Return a line's name, and whether it is requested, is checked, and was wrong.

        `asked` comes before `checked`: checked boxes are requested so often that a model would look no further.
        """
        place = [self.place(line)] if self.goes_by_place(line) else []
        asked = self.asked(line)
        flags = [] if asked is None else [_FLAGS[asked]]
        ticked = re.findall(r", ((?:un)?checked)", self.lines[line]) if line.endswith(TICKED) else []
        return ", ".join([f"{line}: {quoted(self.name(line))}", *place, *flags, *ticked, *(["wrong"] if wrong else [])])

    def asked(self, line: str) -> bool | None:
        """Return whether the instruction has the line's name, or its place if it speaks of places; None if neither."""
        if self.goes_by_place(line):
            return _has(self.instruction, self.place(line))
        name = self.name(line)
        return _has(self.instruction, _ALSO_CALLED.get(name, name)) if name else None

    def name(self, line: str) -> str:
        return name_in(self.lines[line])

    def goes_by_place(self, line: str) -> bool:
        return not self.name(line) and _A_PLACE.search(self.instruction) is not None

    def place(self, line: str) -> str:
        """Return the position of a line among the lines of its role: 1st, 2nd."""
        place = [other for other in self.lines if role_of(other) == role_of(line)].index(line) + 1
        return f"{place}{_ENDINGS.get(place, 'th')}"

    def rivals(self, line: str) -> list[str]:
        """Return the other links, or the other buttons."""
        return [one for one in self.lines if one != line and one.endswith(_CHOSEN) and role_of(one) == role_of(line)]

    @property
    def filled_in(self) -> list[str]:
        return [one for one in self.lines if one.endswith(_FILLED_IN)]

    def is_wrong(self, line: str) -> bool:
        """Return whether a field is filled in differently from the request."""
        wanted = self.asked(line) is True
        return wanted == (", unchecked" in self.lines[line]) if line.endswith(TICKED) else not wanted


def _has(instruction: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", instruction, re.IGNORECASE) is not None


def _target(action: str, lines: Mapping[str, str]) -> str:
    """Return the name of the line that an action is about, for a key the focused one; empty if there is none."""
    if action.startswith("press "):
        return next((name for name, value in lines.items() if value.endswith(", focused")), "")
    match = _TARGET.match(action)
    return next((name for name in lines if match and name.startswith(f"{match[1]} ")), "")
