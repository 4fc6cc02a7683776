"""Reasoning traces from ALFWorld's own words: the offline teacher (paper, section 4.2 and C.1).

A trace says where the agent is and what it holds, and of both whether the task asks for them; what is known of the thing and
the place that an action is about; whether the state accepts it; of an action that brings the agent nearer, whether the task
asks for that which it is about, and whether the thing is as it is wanted; and ends with a verdict. So whether something is
asked for is said at most turns, mostly no, and not only where it wins: a model that reads it there alone learns to say yes.

Example, of `move mug 1 to desk 1`: at desk 1, asked. holding mug 1, asked. mug 1: is cleaned. desk 1: pen 2. accepted.
mug asked. desk asked. is cleaned. wins.

Differs: the paper asks a strong teacher LLM; models/experience/teacher.py does that.
"""

import re
from collections.abc import Sequence

from infra.environments.alfworld.memory import IS
from infra.environments.alfworld.view import REFUSED, is_accepted
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_THING = re.compile(r"[a-z]+ \d+")
_GETS_NEARER = ("take ", "heat ", "cool ", "clean ", "move ", "use ")
"""How the actions begin that a task may need."""
_BECOMES = {"clean": "cleaned", "heat": "heated", "hot": "heated", "cool": "cooled"}
"""What a thing has to have become, by the word of a task that says so."""
_TWO = "two"
_DONE = {True: "is", False: "not yet"}


class FactsAnnotator:
    """Explains every transition of an ALFWorld trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Evidence and verdict for one transition."""
    lines, words = lines_of(turn.state), task.instruction.split(" ")
    here = [f"{what} {lines[what]}{_flag(lines[what], words)}" for what in ("at", "holding")]
    known = [f"{name}: {lines[name]}" for name in _THING.findall(turn.action) if name in lines]
    accepted = is_accepted(lines, turn.action)
    asked = _request(turn, lines, words) if accepted and turn.action.startswith(_GETS_NEARER) else []
    evidence = [*here, *known, "accepted" if accepted else "not accepted here", *asked]
    return ". ".join([*evidence, _verdict(turn)]) + "."


def _flag(named: str, words: Sequence[str]) -> str:
    """Whether a task asks for one of the numbered things or places that are named; nothing where none is."""
    kinds = _kinds(named)
    return f", {_asked(any(kind in words for kind in kinds))}" if kinds else ""


def _request(turn: Turn, lines: dict[str, str], words: Sequence[str]) -> list[str]:
    """What of that which an action is about the task asks for, and whether what else it wants is so yet."""
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
