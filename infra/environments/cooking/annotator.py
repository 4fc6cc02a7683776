"""Reasoning traces from the environment's own rules: the offline teacher (paper, section 4.2 and C.1).

A trace puts the evidence first: it copies the deciding lines from the state, says what follows from the rule and the
recipe, and ends with a verdict. The rest is then easy to predict.

Example: carrot: held raw uncut. oven here. makes roasted. recipe: carrot roasted sliced. wanted roasted. right. works.

Differs: the paper uses a strong teacher LLM; models/experience/teacher.py does that. Here hindsight is the real next
state, which shows whether the action had an effect.
"""

import re
from collections.abc import Sequence

from infra.environments.verdicts import verdict
from schemas.records import AgentTask, Trajectory, Turn
from schemas.state_text import lines_of

_MAKES = {
    "stove": "fried",
    "oven": "roasted",
    "BBQ": "grilled",
    "slice": "sliced",
    "dice": "diced",
    "chop": "chopped",
}
_CUTS = ("sliced", "diced", "chopped")
_TWO_THINGS = re.compile(r"^(\w+) (.+) (?:from|with|on|into) (.+)$")
_ONE_THING = re.compile(r"^(take|drop|eat|drink|open|close) (.+)$")


class FactsAnnotator:
    """Annotator that explains every transition of a cooking trajectory."""

    def annotate(self, trajectories: Sequence[Trajectory]) -> list[list[str]]:
        """Return one reasoning trace per turn."""
        return [[explain(trajectory.task, turn) for turn in trajectory.turns] for trajectory in trajectories]


def explain(task: AgentTask, turn: Turn) -> str:
    """Return evidence, rule and verdict for one transition."""
    state = lines_of(turn.state)
    recipe = recipe_in(task.instruction)
    parts = _evidence(turn.action, state, recipe)
    return ". ".join([*parts, verdict(turn)]) + "."


def recipe_in(instruction: str) -> dict[str, str]:
    """Return how each ingredient is cooked and cut, as in `roasted sliced`, by its name."""
    wanted = [text.rsplit(" ", 2) for text in instruction.removeprefix("recipe: ").split("; ")]
    return {name: f"{cooking} {cutting}" for name, cooking, cutting in wanted}


def _evidence(action: str, state: dict[str, str], recipe: dict[str, str]) -> list[str]:
    if match := _TWO_THINGS.match(action):
        verb, thing, place = match.groups()
        return [_line(thing, state), _line(place, state), *_effect(verb, thing, place, state, recipe)]
    if action == "eat meal":
        eaten = [_line(name, state) for name in recipe]
        return [_line("meal", state), *eaten, *(f"recipe: {name} {wanted}" for name, wanted in recipe.items())]
    if action == "prepare meal":
        return [_line("you", state), *(_line(name, state) for name in recipe)]
    if action.startswith("go "):
        return [_line(f"{state['you']} {action.removeprefix('go ')}", state)]
    if match := _ONE_THING.match(action):
        verb, thing = match.groups()
        return [_line(thing, state), *(["in recipe"] if verb in ("eat", "drink") and thing in recipe else [])]
    return ["no such action"]


def _effect(verb: str, thing: str, tool: str, state: dict[str, str], recipe: dict[str, str]) -> list[str]:
    makes = _MAKES.get(tool if verb == "cook" else verb)
    if makes is None:
        return []
    if thing not in recipe:
        return [f"makes {makes}", "not in recipe"]
    cooking, cutting = recipe[thing].split(" ")
    wanted = cooking if verb == "cook" else cutting
    return [
        f"makes {makes}",
        f"recipe: {thing} {recipe[thing]}",
        f"wanted {wanted}",
        _judgement(makes, wanted, state.get(thing, "")),
    ]


def _judgement(makes: str, wanted: str, present: str) -> str:
    """Return whether a preparation is right, wrong or was done before.

    It is spelt out because a small model that skips to the verdict allows what the recipe forbids.
    """
    undone = ("uncut",) if makes in _CUTS else ("raw", "uncooked")
    if not any(word in present.split() for word in undone):
        return "done before"
    return "right" if makes == wanted else "wrong"


def _line(name: str, state: dict[str, str]) -> str:
    if name in state:
        return f"{name}: {state[name]}"
    ways = [
        f"{where}: {way}"
        for where, way in state.items()
        if way.startswith(f"{name} ") and where.startswith(state["you"] + " ")
    ]
    if ways:
        return ways[0]
    here = state.get(state["you"], "").split()
    return f"{name} here" if name in here else "no such thing here"
