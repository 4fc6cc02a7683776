"""What is asked of a chat model, and the port of those who answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Question:
    """A question that is to be answered with one JSON object."""

    system: str
    """What the model is to do. Nothing that was found in a log or made by a model belongs here."""
    user: str
    """What it is given to do it with."""
    temperature: float | None = None
    """None: as the model's provider thinks best."""
    seed: int = 0
    """Of what is drawn: asked again with the same seed, the answer may be an earlier one."""
    top_p: float = 1.0
    """Of what is drawn; see Sampling."""


IsFine = Callable[[int, str], bool]
"""Whether an answer to a question, counted from 0, can be used."""


class ChatModel(Protocol):
    """Answers questions."""

    def answer(self, questions: Sequence[Question], is_fine: IsFine, num_attempts: int = 1) -> list[str]:
        """One answer per question, each asked again until it is fine; the last one if it never is.

        Args:
            questions: Asked side by side.
            is_fine: Tells it of each; only fine answers are kept to be given again.
            num_attempts: How often a question is asked at most.
        """
        ...
