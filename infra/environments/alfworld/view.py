"""ALFWorld's text as an abstract state: its last answer, and the actions it would accept (paper, section 4.1).

    - saw: You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 2.
    - at: desk 1
    - holding: nothing
    - can: examine desk 1, take mug 1 from desk 1, take pen 2 from desk 1
    - bed 1: unseen
    - desk 1: mug 1, pen 2
    - drawer 1: closed
    - drawer 2: unseen

The agent can go to every place except where it is, which may be several places close together. `look`, `inventory` and
`help` are always accepted and not listed. After the first four lines comes what is remembered (memory.py), places first
and then things: so lines stay in place, and an experience model has little to write.
"""

import re
from collections.abc import Iterable, Mapping

from infra.environments.alfworld.memory import IS, NOTHING
from schemas.state_text import text_of

GO = "go to "
ALWAYS = ("look", "inventory", "help")
REFUSED = "Nothing happens."
"""ALFWorld's answer to an action that it does not accept."""
_NOWHERE = "the middle of the room"
_TOOLS = {"heat": "microwave", "cool": "fridge", "clean": "sinkbasin", "slice": "knife"}
_THING = re.compile(r"\b[a-z]+ \d+\b")
_ASKED = re.compile(
    r"^(?:put|find two|look at|examine|heat|cool|clean) .*?(?: (?:in|on|in/on) (?P<place>[a-z]+)| (?:under|with) the [a-z]+)$"
)
_AROUND_FIRST_WORDS = re.compile(r"^.*?=-\s*|\s*Your task is to: .*$", re.DOTALL)


def state_text(said: str, admissible: Iterable[str], held: str, remembered: Mapping[str, str]) -> str:
    """Return the state after an answer of ALFWorld.

    Args:
        said: Answer of ALFWorld, verbatim.
        admissible: Actions that it would accept now.
        held: Thing in the agent's hands; empty if there is none.
        remembered: A line for each place in the room, and others.
    """
    accepted = in_order(set(admissible) - set(ALWAYS))
    elsewhere = places_to_go(accepted)
    here = [place for place in places_in(remembered) if place not in elsewhere]
    can = [action for action in accepted if not action.startswith(GO)]
    return text_of(
        {
            "saw": _one_line(said),
            "at": ", ".join(here) or _NOWHERE,
            "holding": held or NOTHING,
            "can": ", ".join(can) or NOTHING,
            **remembered,
        }
    )


def _one_line(said: str) -> str:
    """Return the text on one line, without the banner and the task with which a game begins."""
    return " ".join(_AROUND_FIRST_WORDS.sub("", said).split()) or NOTHING


def in_order(names: Iterable[str]) -> list[str]:
    """Sort names by word, with numbers by value: drawer 2 comes before drawer 10."""
    return sorted(names, key=lambda name: [(int(word), "") if word.isdigit() else (-1, word) for word in name.split()])


def places_to_go(admissible: Iterable[str]) -> list[str]:
    """Return the places to which the accepted actions go."""
    return [action.removeprefix(GO) for action in admissible if action.startswith(GO)]


def places_in(lines: Mapping[str, str]) -> list[str]:
    """Return all places of a state."""
    return [name for name, known in lines.items() if _THING.fullmatch(name) and not known.startswith(IS)]


def actions_in(lines: dict[str, str]) -> list[str]:
    """Return all actions that a state says would be accepted."""
    here = _listed(lines, "at")
    return [*(GO + place for place in places_in(lines) if place not in here), *_listed(lines, "can")]


def is_accepted(lines: dict[str, str], action: str) -> bool:
    """Return whether a state says that an action would be accepted, or the action always is."""
    return action in ALWAYS or action in actions_in(lines)


def near_misses_in(lines: dict[str, str]) -> list[str]:
    """Return well-formed actions about what a state names, accepted or not."""
    places = places_in(lines)
    things = sorted(set(_THING.findall(" ".join(lines.values()))) - set(places))
    takes = [f"take {thing} from {place}" for thing in things for place in places]
    moves = [f"move {thing} to {place}" for thing in things for place in places]
    lids = [f"{verb} {place}" for verb in ("open", "close") for place in places]
    tools = [f"{verb} {thing} with {tool} 1" for verb, tool in _TOOLS.items() for thing in things]
    return [*takes, *moves, *lids, *tools, *(f"{verb} {thing}" for verb in ("use", "go to") for thing in things)]


def generated_task_error(instruction: str, lines: dict[str, str]) -> str | None:
    """Return why a generated task could not be solved from this first state; None if no reason is known."""
    asked = _ASKED.match(instruction)
    if asked is None:
        return f"ALFWorld asks for no such thing: {instruction!r}"
    kinds = {place.rpartition(" ")[0] for place in places_in(lines)}
    if not kinds or (asked["place"] and asked["place"] not in kinds):
        return f"no {asked['place'] or 'place'} to go to"
    return None


def _listed(lines: dict[str, str], name: str) -> list[str]:
    listed = lines.get(name, NOTHING)
    return listed.split(", ") if listed != NOTHING else []
