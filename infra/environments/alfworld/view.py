"""ALFWorld's text as an abstract state: what it said last, and what it would accept, a line for each verb (paper, section 4.1).

    - saw: You arrive at desk 1. On the desk 1, you see a mug 1, and a pen 2.
    - examine: desk 1
    - go to: bed 1, drawer 1, drawer 2
    - take: mug 1 from desk 1, pen 2 from desk 1

Look, inventory and help are always accepted, and are not said.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from schemas.state_text import text_of

VERBS = ("go to", "open", "close", "take", "move", "use", "heat", "cool", "clean", "slice", "examine")
"""Every action is one of them and what it is done to, `mug 1 from desk 1`, or one of ALWAYS."""
ALWAYS = ("look", "inventory", "help")
REFUSED = "Nothing happens."
"""What ALFWorld says to what it does not accept."""
_TOOLS = {"heat": "microwave", "cool": "fridge", "clean": "sinkbasin", "slice": "knife"}
_THING = re.compile(r"\b[a-z]+ \d+\b")
_ASKED = re.compile(
    r"^(?:put|find two|look at|examine|heat|cool|clean) .*?(?: (?:in|on|in/on) (?P<place>[a-z]+)| (?:under|with) the [a-z]+)$"
)
_AROUND_FIRST_WORDS = re.compile(r"^.*?=-\s*|\s*Your task is to: .*$", re.DOTALL)


def state_text(said: str, admissible: Iterable[str]) -> str:
    """The state after ALFWorld said something."""
    lines = {"saw": _one_line(said)}
    accepted = accepted_by_verb(admissible)
    return text_of(lines | {verb: ", ".join(accepted[verb]) for verb in VERBS if verb in accepted})


def _one_line(said: str) -> str:
    """Without banner and task, which stand at the beginning of the first words."""
    return " ".join(_AROUND_FIRST_WORDS.sub("", said).split()) or "nothing"


def accepted_by_verb(admissible: Iterable[str]) -> dict[str, list[str]]:
    """What is done to what, by verb; numbers count, so that drawer 2 comes before drawer 10."""
    accepted: dict[str, list[str]] = defaultdict(list)
    for action in sorted(admissible, key=_with_numbers):
        verb = next((verb for verb in VERBS if action.startswith(f"{verb} ")), None)
        if verb:
            accepted[verb].append(action.removeprefix(f"{verb} "))
    return accepted


def _with_numbers(action: str) -> list[tuple[int, str]]:
    return [(int(word), "") if word.isdigit() else (-1, word) for word in action.split()]


def actions_in(lines: dict[str, str]) -> list[str]:
    """All actions that a state says would be accepted."""
    return [f"{verb} {what}" for verb in VERBS for what in _listed(lines, verb)]


def near_misses_in(lines: dict[str, str]) -> list[str]:
    """Well-formed actions about what a state names, whether it accepts them or not."""
    places = _listed(lines, "go to")
    things = sorted(set(_THING.findall(lines["saw"])) - set(places))
    takes = [f"take {thing} from {place}" for thing in things for place in places]
    moves = [f"move {thing} to {place}" for thing in things for place in places]
    lids = [f"{verb} {place}" for verb in ("open", "close") for place in places]
    tools = [f"{verb} {thing} with {tool} 1" for verb, tool in _TOOLS.items() for thing in things]
    return [*takes, *moves, *lids, *tools, *(f"{verb} {thing}" for verb in ("use", "go to") for thing in things)]


def generated_task_error(instruction: str, lines: dict[str, str]) -> str | None:
    """Why a generated task could not be solved from this first state on; None if nothing speaks against it."""
    asked = _ASKED.match(instruction)
    if asked is None:
        return f"ALFWorld asks for no such thing: {instruction!r}"
    places = {place.split()[0] for place in _listed(lines, "go to")}
    if not places or (asked["place"] and asked["place"] not in places):
        return f"no {asked['place'] or 'place'} to go to"
    return None


def _listed(lines: dict[str, str], verb: str) -> list[str]:
    return lines[verb].split(", ") if verb in lines else []
