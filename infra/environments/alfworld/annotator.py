"""Reasoning traces from ALFWorld's own text: the offline teacher (paper, section 4.2 and C.1).

A trace says where the agent is and what it holds, and whether the task requests either; what is known of the thing and
the place of the action; and whether the state accepts it. For an accepted action that may be a step of the task it adds
whether the task requests its objects, and whether the thing is in the wanted condition. It ends with a verdict. So most
turns say whether something is requested, mostly that it is not: a model that reads it only at wins learns to say yes.

Example for `move mug 1 to desk 1`: at desk 1, asked. holding mug 1, asked. mug 1: is cleaned. desk 1: pen 2. accepted.
mug asked. desk asked. is cleaned. wins.

Differs: the paper uses a strong teacher LLM; models/experience/teacher.py does that.
"""

import re
from collections.abc import Sequence

from infra.environments.alfworld.memory import IS
from infra.environments.alfworld.view import REFUSED, is_accepted
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_THING = re.compile(r"[a-z]+ \d+")
_GETS_NEARER = ("take ", "heat ", "cool ", "clean ", "move ", "use ")
"""Prefixes of the actions that a task may need."""
_BECOMES = {"clean": "cleaned", "heat": "heated", "hot": "heated", "cool": "cooled"}
"""Condition that a thing must have, by the word of the task that demands it."""
_TWO = "two"
_DONE = {True: "is", False: "not yet"}


class FactsAnnotator:
    """Annotator that explains every transition of an ALFWorld trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """Return one reasoning trace per turn."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Return evidence and verdict for one transition."""
    lines, words = lines_of(turn.state), task.instruction.split(" ")
    here = [f"{what} {lines[what]}{_flag(lines[what], words)}" for what in ("at", "holding")]
    known = [f"{name}: {lines[name]}" for name in _THING.findall(turn.action) if name in lines]
    accepted = is_accepted(lines, turn.action)
    asked = _request(turn, lines, words) if accepted and turn.action.startswith(_GETS_NEARER) else []
    evidence = [*here, *known, "accepted" if accepted else "not accepted here", *asked]
    return ". ".join([*evidence, _verdict(turn)]) + "."


def _flag(named: str, words: Sequence[str]) -> str:
    """Return whether a task requests one of the numbered things or places in a text; empty if it has none."""
    kinds = _kinds(named)
    return f", {_asked(any(kind in words for kind in kinds))}" if kinds else ""


def _request(turn: Turn, lines: dict[str, str], words: Sequence[str]) -> list[str]:
    """Return which objects of the action the task requests, and whether its other demands are met yet."""
    kinds = _kinds(f"{lines['holding']} {turn.action}")
    asked = [f"{kind} {_asked(kind in words)}" for kind in kinds]
    thing, *places = _THING.findall(turn.action)
    known = [one for word, one in _BECOMES.items() if word in words]
    became = lines.get(thing, "").removeprefix(IS).split(", ")
    done = [f"{_DONE[one in became]} {one}" for one in known]
    if places and _TWO in words:
        done.append(f"{_DONE[_kinds(thing)[0] in _kinds(lines.get(places[0], ''))]} two")
    return [*asked, *done]


def _kinds(named: str) -> list[str]:
    return list(dict.fromkeys(name.split(" ")[0] for name in _THING.findall(named)))


def _asked(asked: bool) -> str:
    return "asked" if asked else "not asked"


def _verdict(turn: Turn) -> str:
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "refused" if lines_of(turn.step.state).get("saw") == REFUSED else "works"
