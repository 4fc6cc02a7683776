"""The door to MiniWoB++: reset and step over a vector of pages, in browsers that processes of their own drive."""

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
"""Tasks that are about how a name is written, or whose names mean something."""


def new_game() -> Game:
    """In a process of its own, which has a browser."""
    from infra.environments.miniwob.page import MiniwobPage

    return MiniwobPage()


class MiniwobEnvironment(OpenedGames):
    """MiniWoB++'s pages as states; success is the full reward of a page.

    Differs: the ten seconds that MiniWoB++ gives an episode are lifted, and its reward does not fall with time.
    """

    def __init__(self, recipe: MiniwobRecipe) -> None:
        """An environment of some of its tasks, which are our families."""
        super().__init__(new_game, recipe.families, games_per_process=_EPISODES_PER_BROWSER)

    def which(self, task: AgentTask) -> tuple[str, str, str]:
        """Its page, the seed of its chance, and whose words it uses: some pages have others for tests."""
        return task.family, f"{task.split}/{task.seed}", "test" if task.split == "test" else "train"

    def admissible_actions(self, slot: int) -> list[str]:
        """Every click, every choice, and to type what the expert would, into each textbox."""
        return [*self._seen[slot].admissible, *self._typed_here(slot, [text_in(self.expert(slot))])]

    def near_misses(self, slot: int) -> list[str]:
        """Keys, what other pages would accept, to type into what is no textbox, and to type what belongs on another page."""
        others = {action for seen in self._seen.values() for action in seen.admissible}
        misplaced = {put("type", one.removeprefix("click "), "text") for one in others if one.startswith("click ")}
        elsewhere = self._typed_here(slot, [text_in(seen.expert) for seen in self._seen.values()])
        return sorted({*others, *misplaced, *elsewhere, *(f"press {key}" for key in KEYS)})

    def _typed_here(self, slot: int, texts: Iterable[str]) -> list[str]:
        boxes = [name.split()[0] for name in lines_of(self._state(slot)) if name.endswith(" textbox")]
        return [put("type", box, text) for box in boxes for text in texts if text]

    def names(self, task: AgentTask) -> list[str]:
        """What is called as only this task calls it, unless it is to be written otherwise."""
        if task.family in _SPELLING:
            return []
        return names_on(task.instruction, lines_of(task.initial_state or self.first_state(task)))
