"""Progress of a cooking game, from its state."""

from infra.environments.cooking.annotator import recipe_in
from schemas.records import AgentTask
from schemas.state_text import lines_of

_MEAL = "meal"


class StateProgress:
    """Share of what the recipe asks for; see `schemas.ports.Progress`."""

    def score(self, task: AgentTask, state: str) -> float:
        """Count the prepared meal, and of each ingredient that it is at hand, cooked right and cut right."""
        try:
            words = {name: text.split() for name, text in lines_of(state).items()}
        except ValueError:  # a dream may write anything
            return 0.0
        recipe = recipe_in(task.instruction)
        done = [_MEAL in words or any(words.get(name, [])[:1] == [_MEAL] for name in recipe)]
        for name, wanted in recipe.items():
            found, (cooking, cutting) = words.get(name, []), wanted.split(" ")
            done += [found[:1] in (["held"], [_MEAL]), _is_cooked(cooking, found), cutting in found]
        return sum(done) / len(done)


def _is_cooked(cooking: str, found: list[str]) -> bool:
    return cooking in found or (cooking == "raw" and "uncooked" in found)
