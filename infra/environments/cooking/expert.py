"""Expert for cooking games. It reads the facts, so it knows what the agent must find out.

It gathers, cooks, cuts, prepares and eats. It plans anew at every step, so it can go on from wherever a noisy policy
has left the game.
"""

from collections import deque
from typing import NamedTuple

from infra.environments.cooking.view import DIRECTIONS, FactIndex

APPLIANCE_FOR = {"fried": "stove", "roasted": "oven", "grilled": "BBQ"}
VERB_FOR = {"sliced": "slice", "diced": "dice", "chopped": "chop"}


class Ingredient(NamedTuple):
    """Food of the recipe, with the preparation that it needs."""

    name: str
    cooking: str
    cutting: str


def next_action(facts: FactIndex, ingredients: list[Ingredient]) -> str:
    """Return the action that brings the meal one step closer."""
    if ("meal", "I") in facts.pairs("in"):
        return "eat meal"
    for ingredient in ingredients:
        if (ingredient.name, "I") not in facts.pairs("in"):
            return _fetch(facts, ingredient.name)
    for ingredient in ingredients:
        appliance = APPLIANCE_FOR.get(ingredient.cooking)
        if appliance and not facts.is_(ingredient.cooking, ingredient.name):
            return _walk(facts, _room_of(facts, appliance)) or f"cook {ingredient.name} with {appliance}"
    for ingredient in ingredients:
        verb = VERB_FOR.get(ingredient.cutting)
        if verb and facts.is_("uncut", ingredient.name):
            knife_is_held = ("knife", "I") in facts.pairs("in")
            return f"{verb} {ingredient.name} with knife" if knife_is_held else _fetch(facts, "knife")
    return _walk(facts, facts.pairs("cooking_location")[0][0]) or "prepare meal"


def _fetch(facts: FactIndex, thing: str) -> str:
    place = _place_of(facts, thing)
    if place is None:
        return "look"
    return _walk(facts, _room_of(facts, place)) or _reach(facts, thing, place)


def _reach(facts: FactIndex, thing: str, place: str) -> str:
    if facts.is_("closed", place):
        return f"open {place}"
    return f"take {thing}" if facts.types[place] == "r" else f"take {thing} from {place}"


def _place_of(facts: FactIndex, thing: str) -> str | None:
    return next((place for name in ("on", "in", "at") for t, place in facts.pairs(name) if t == thing), None)


def _room_of(facts: FactIndex, place: str) -> str:
    return next((room for thing, room in facts.pairs("at") if thing == place), place)


def _walk(facts: FactIndex, goal: str) -> str | None:
    """Return the first action on the shortest way to a room; None if the player is there."""
    if facts.room == goal:
        return None
    exits = [(origin, d, there) for d in DIRECTIONS for there, origin in facts.pairs(f"{d}_of")]
    came_from = {goal: ("", "")}
    frontier = deque([goal])
    while frontier and facts.room not in came_from:
        nearer = frontier.popleft()
        for origin, direction, there in exits:
            if there == nearer and origin not in came_from:
                came_from[origin] = (direction, there)
                frontier.append(origin)
    direction, there = came_from[facts.room]
    door = next((d for a, d, b in facts.pairs("link") if (a, b) == (facts.room, there)), None)
    return f"open {door}" if door and facts.is_("closed", door) else f"go {direction}"
