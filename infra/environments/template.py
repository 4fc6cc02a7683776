"""Template for an environment of your own: copy it into your package and change the game (README, Environments).

A treasure is in one of several boxes. Opening its box and taking it wins; breaking any box loses.
"""

import random

from infra.environments.single_games import Game, GameEnvironment, Outcome
from schemas.records import AgentTask

COLOURS = ("red", "blue", "green", "black", "white")


class TreasureGame(Game):
    """Game about one treasure in a room of boxes."""

    def __init__(self, boxes: list[str], place: str) -> None:
        self._boxes, self._place = dict.fromkeys(boxes, "closed"), place

    def state(self) -> str:
        """Return the content of each box, or `closed` if it was not opened."""
        return "\n".join(f"- {box}: {what}" for box, what in self._boxes.items())

    def act(self, action: str) -> Outcome:
        """Open a box, break one, or take the treasure."""
        verb, _, box = action.partition(" ")
        if action == "take treasure" and "treasure" in self._boxes.values():
            return "success"
        if verb == "break" and box in self._boxes:
            return "failure"
        if verb == "open" and self._boxes.get(box) == "closed":
            self._boxes[box] = "treasure" if box == self._place else "empty"
        return "continue"

    def actions(self) -> list[str]:
        """Return the possible actions, the treasure first."""
        found = ["take treasure"] if "treasure" in self._boxes.values() else []
        closed = [box for box, what in self._boxes.items() if what == "closed"]
        return [*found, *(f"open {box}" for box in closed), *(f"break {box}" for box in self._boxes)]

    def expert(self) -> str:
        """Return the action that takes the treasure if it is seen, or else opens the next box."""
        return self.actions()[0]


class Treasures(GameEnvironment):
    """Environment of treasure games; the name of a family is its number of boxes."""

    def instruction(self, split: str, family: str, seed: int) -> str:
        """Return an instruction that no other split or seed has."""
        return f"find treasure {split} {seed}"

    def game(self, task: AgentTask) -> Game:
        """Return the task's game, the same for the same task."""
        rng = random.Random(task.task_id)
        boxes = [f"{colour} box" for colour in rng.sample(COLOURS, int(task.family))]
        return TreasureGame(boxes, rng.choice(boxes))
