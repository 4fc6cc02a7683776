"""A template for an environment of your own: copy it into your package and make the game yours (README, Environments).

A treasure lies in one of some boxes. Here success needs one open box and the treasure; to break a box is to lose.
"""

import random

from infra.environments.single_games import Game, GameEnvironment, Outcome
from schemas.records import AgentTask

COLOURS = ("red", "blue", "green", "black", "white")


class TreasureGame(Game):
    """One treasure in one room."""

    def __init__(self, boxes: list[str], place: str) -> None:
        self._boxes, self._place = dict.fromkeys(boxes, "closed"), place

    def state(self) -> str:
        """What is in the boxes, as far as they were opened."""
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
        """The treasure first."""
        found = ["take treasure"] if "treasure" in self._boxes.values() else []
        closed = [box for box, what in self._boxes.items() if what == "closed"]
        return [*found, *(f"open {box}" for box in closed), *(f"break {box}" for box in self._boxes)]

    def expert(self) -> str:
        """Take what is seen, or open the next box."""
        return self.actions()[0]


class Treasures(GameEnvironment):
    """Rooms with as many boxes as their family is called after: families are numbers."""

    def instruction(self, split: str, family: str, seed: int) -> str:
        """No two alike."""
        return f"find treasure {split} {seed}"

    def game(self, task: AgentTask) -> Game:
        """The same for the same task."""
        rng = random.Random(task.task_id)
        boxes = [f"{colour} box" for colour in rng.sample(COLOURS, int(task.family))]
        return TreasureGame(boxes, rng.choice(boxes))
