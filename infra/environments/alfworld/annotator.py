"""Reasoning traces from ALFWorld's own words: the offline teacher (paper, section 4.2 and C.1).

A trace says where the agent is and what it holds, and compares both with what the task wants; what is known of the thing and
the place that an action is about; whether the state accepts it; of an action that brings the agent nearer, the same comparison,
and whether the thing is as it is wanted; and ends with a verdict. What is wanted is said again at each comparison, just before
the answer: who is held to is mostly what is wanted, and a model that has to look for it in the task says yes without looking.

Example, of `move mug 1 to desk 1`: at desk 1, wants desk: yes. holding mug 1, wants mug: yes. mug 1: is cleaned. desk 1: pen 2.
accepted. mug, wants mug: yes. desk, wants desk: yes. is cleaned. wins.

Differs: the paper asks a strong teacher LLM; models/teacher.py does that.
"""

import re
from collections.abc import Mapping, Sequence

from infra.environments.alfworld.memory import IS
from infra.environments.alfworld.view import REFUSED, is_accepted
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_THING = re.compile(r"[a-z]+ \d+")
_GETS_NEARER = ("take ", "heat ", "cool ", "clean ", "move ", "use ")
"""How the actions begin that a task may need."""
_NAME_NOTHING = frozenset(
    "put a some two hot cool clean heat find and it them in on look at under examine the with".split()
)
"""Words of ALFWorld's tasks; what is left is what they ask for."""
_AS_IT_WAS = "as it was"
_BECOMES = {"clean": "cleaned", "heat": "heated", "hot": "heated", "cool": "cooled"}
"""What a thing has to have become, by the word of a task that says so."""
_TWO = "two"
_DONE = {True: "is", False: "not yet"}


class AlfworldAnnotator:
    """Explains every transition of an ALFWorld trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """One trace per turn; see the port."""
        return [[explain(one.task, turn) for turn in one.turns] for one in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Evidence and verdict for one transition."""
    lines, words = lines_of(turn.state), task.instruction.split(" ")
    thing, place = _wanted(words)
    here = [f"at {_compared(lines['at'], place)}", f"holding {_compared(lines['holding'], thing)}"]
    known = [f"{name}: {lines.get(name, _AS_IT_WAS)}" for name in _THING.findall(turn.action)]
    accepted = is_accepted(lines, turn.action)
    nearer = _nearer(turn.action, lines, words) if accepted and turn.action.startswith(_GETS_NEARER) else []
    evidence = [*here, *known, "accepted" if accepted else "not accepted here", *nearer]
    return ". ".join([*evidence, _verdict(turn)]) + "."


def _wanted(words: Sequence[str]) -> tuple[str, str]:
    """The kind of thing that a task asks for, and of the place where it is to be, or of the lamp to look at it by."""
    named = [word for word in words if word not in _NAME_NOTHING] or words
    return named[0], named[-1]


def _compared(named: str, wanted: str) -> str:
    """What is named, and whether any of it is of the kind that is wanted; nothing is not compared."""
    kinds = _kinds(named)
    return f"{named}, wants {wanted}: {'yes' if wanted in kinds else 'no'}" if kinds else named


def _nearer(action: str, lines: Mapping[str, str], words: Sequence[str]) -> list[str]:
    """Whether an action is about what the task asks for, and whether what else it wants is so yet."""
    thing, place = _wanted(words)
    first, *places = _THING.findall(action)
    about = (lines["holding"], first) if action.startswith("use ") else (first, *places)
    compared = [_compared(name, wanted) for name, wanted in zip(about, (thing, place), strict=False)]
    became = lines.get(first, "").removeprefix(IS).split(", ")
    done = [f"{_DONE[one in became]} {one}" for word, one in _BECOMES.items() if word in words]
    if places and _TWO in words:
        done.append(f"{_DONE[_kinds(first)[0] in _kinds(lines.get(places[0], ''))]} two")
    return [*compared, *done]


def _kinds(named: str) -> list[str]:
    return [name.split(" ")[0] for name in _THING.findall(named)]


def _verdict(turn: Turn) -> str:
    if turn.step.done:
        return "wins" if turn.step.success else "loses"
    return "refused" if lines_of(turn.step.state).get("saw") == REFUSED else "works"
