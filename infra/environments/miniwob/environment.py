"""MiniWoB++ as a vectorised environment, with pages in browsers that worker processes drive."""

from collections.abc import Iterable

from infra.environments.miniwob.names import names_on
from infra.environments.miniwob.view import KEYS, put, text_in
from infra.environments.opened_games import OpenedGames
from infra.environments.processes import Game
from schemas.recipes.environments import MiniwobRecipe, MiniwobTask
from schemas.records import AgentTask
from schemas.state_text import lines_of

_EPISODES_PER_BROWSER = 200
_SPELLING: tuple[MiniwobTask, ...] = ("click-dialog-2", "enter-text-2", "use-autocomplete-nodelay")
"""Tasks about how a name is written, or whose names mean something."""


def new_game() -> Game:
    """Return a new page; the worker process that calls this has its own browser."""
    from infra.environments.miniwob.page import MiniwobPage

    return MiniwobPage()


class MiniwobEnvironment(OpenedGames):
    """MiniWoB++'s pages as states; success is the full reward of a page.

    Differs: MiniWoB++'s limit of ten seconds per episode is lifted, and its reward does not fall with time.
    """

    def __init__(self, recipe: MiniwobRecipe) -> None:
        """Create an environment with the recipe's tasks, which are our families."""
        super().__init__(new_game, recipe.families, games_per_process=_EPISODES_PER_BROWSER)

    def which(self, task: AgentTask) -> tuple[str, str, str]:
        """Return the task's page, random seed and data mode: some pages use other words for tests."""
        return task.family, f"{task.split}/{task.seed}", "test" if task.split == "test" else "train"

    def admissible_actions(self, slot: int) -> list[str]:
        """Return every click and choice, and typing the expert's text into each textbox."""
        return [*self._seen[slot].admissible, *self._typed_here(slot, [text_in(self.expert(slot))])]

    def near_misses(self, slot: int) -> list[str]:
        """Return keys, actions of other pages, and typing that does not fit.

        It goes into elements that are no textbox, or uses texts that belong on another page.
        """
        others = {action for seen in self._seen.values() for action in seen.admissible}
        misplaced = {put("type", one.removeprefix("click "), "text") for one in others if one.startswith("click ")}
        elsewhere = self._typed_here(slot, [text_in(seen.expert) for seen in self._seen.values()])
        return sorted({*others, *misplaced, *elsewhere, *(f"press {key}" for key in KEYS)})

    def _typed_here(self, slot: int, texts: Iterable[str]) -> list[str]:
        boxes = [name.split()[0] for name in lines_of(self._state(slot)) if name.endswith(" textbox")]
        return [put("type", box, text) for box in boxes for text in texts if text]

    def names(self, task: AgentTask) -> list[str]:
        """Return the names that only this task uses; none if their spelling matters."""
        if task.family in _SPELLING:
            return []
        return names_on(task.instruction, lines_of(task.initial_state or self.first_state(task)))
