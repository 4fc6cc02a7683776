"""Abstract state from TextWorld's facts: what the agent has seen, one line per thing.

The state remembers: a room left behind and a container closed again show what was last seen in them, so that the text
has everything that decides whether an action is possible.

    - you: kitchen                      where the agent is
    - kitchen: counter stove table      furniture of a seen room
    - kitchen north: plain door closed  an exit, its door, and where it leads once that is known
    - fridge: kitchen open              a container
    - red apple: counter raw uncut      a thing: place and condition; held, or in the meal
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set

from textworld.generator.game import Game
from textworld.logic import Proposition

DIRECTIONS = ("north", "south", "east", "west")
COOKED = ("burned", "fried", "roasted", "grilled")
CUTS = ("sliced", "diced", "chopped")


class FactIndex:
    """Index of TextWorld's facts by name, as tuples of argument names."""

    def __init__(self, game: Game, facts: Iterable[Proposition]) -> None:
        """Index the facts, with every thing under the name that commands use."""
        self.types: dict[str, str] = {}
        self.tuples: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for fact in facts:
            names = tuple(_display_name(game, variable.name) for variable in fact.arguments)
            self.types.update(zip(names, (v.type for v in fact.arguments), strict=True))
            self.tuples[fact.name].append(names)

    def is_(self, predicate: str, thing: str) -> bool:
        """Return whether a unary fact holds."""
        return (thing,) in self.tuples[predicate]

    def pairs(self, predicate: str) -> list[tuple[str, ...]]:
        """Return all argument tuples of a predicate."""
        return self.tuples[predicate]

    @property
    def room(self) -> str:
        """Room of the player."""
        return next(place for thing, place in self.pairs("at") if thing == "P")


def _display_name(game: Game, variable: str) -> str:
    info = game.infos.get(variable)
    return info.name if info is not None and info.name else variable


def visible_lines(facts: FactIndex, remembered: Mapping[str, str]) -> dict[str, str]:
    """Return lines for everything that the player sees now or carries."""
    here = facts.room
    fixtures = sorted(thing for thing, place in facts.pairs("at") if place == here and _is_fixture(facts, thing))
    plain = [thing for thing in fixtures if not _opens(facts, thing)]
    lines = {"you": here, here: " ".join(plain) or "empty"}
    for room in [place for _, place in facts.pairs("at") if place in remembered or place == here]:
        lines |= _exit_lines(facts, room, remembered.keys() | {here})
    lines |= {thing: f"{here} {_lid(facts, thing)}" for thing in fixtures if _opens(facts, thing)}
    places = sorted(_visible_things(facts, here, fixtures).items())
    return lines | {thing: " ".join([place, *_condition(facts, thing)]) for thing, place in places}


def gone_things(facts: FactIndex, remembered: Mapping[str, str]) -> list[str]:
    """Return the remembered things that were eaten or drunk."""
    return [thing for (thing,) in facts.pairs("consumed") if thing in remembered]


def _is_fixture(facts: FactIndex, thing: str) -> bool:
    return facts.types[thing] in ("s", "c", "stove", "oven", "toaster")


def _opens(facts: FactIndex, thing: str) -> bool:
    return facts.is_("open", thing) or facts.is_("closed", thing)


def _lid(facts: FactIndex, thing: str) -> str:
    return "open" if facts.is_("open", thing) else "closed"


def _visible_things(facts: FactIndex, here: str, fixtures: list[str]) -> dict[str, str]:
    """Return the place of each portable thing in sight or in hand."""
    lidded = {thing for thing in fixtures if facts.types[thing] == "c" and not facts.is_("open", thing)}
    seen = {t: place for t, place in facts.pairs("on") if place in fixtures}
    seen |= {t: place for t, place in facts.pairs("in") if place in fixtures and place not in lidded}
    seen |= {t: "floor" for t, place in facts.pairs("at") if place == here and facts.types[t] in ("o", "f", "meal")}
    seen |= {t: "held" for t, place in facts.pairs("in") if place == "I"}
    return seen | {thing: "meal" for (thing,) in facts.pairs("used")}


def _condition(facts: FactIndex, thing: str) -> list[str]:
    cooked = next((word for word in COOKED if facts.is_(word, thing)), None)
    if cooked is None and facts.is_("raw", thing):
        cooked = "raw"
    if cooked is None and facts.is_("needs_cooking", thing):
        cooked = "uncooked"
    if cooked is None:
        cooked = next((word for word in ("edible", "drinkable") if facts.is_(word, thing)), None)
    cut = next((word for word in ("uncut", *CUTS) if facts.is_(word, thing)), None)
    return [word for word in (cooked, cut) if word]


def _exit_lines(facts: FactIndex, room: str, seen: Set[str]) -> dict[str, str]:
    doors = {(a, b): door for a, door, b in facts.pairs("link")}
    lines: dict[str, str] = {}
    for direction in DIRECTIONS:
        for there, origin in facts.pairs(f"{direction}_of"):
            if origin == room:
                door = doors.get((room, there))
                known = there if there in seen else "unseen"
                lines[f"{room} {direction}"] = f"{door} {_lid(facts, door)} {known}" if door else known
    return lines
