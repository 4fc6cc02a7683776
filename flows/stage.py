"""Stages of a cycle; light, so that the command line knows them at once."""

from enum import StrEnum


class Stage(StrEnum):
    """Where a cycle may be told to stop."""

    INGEST = "ingest"
    EXPERIENCE = "experience"
    DREAM = "dream"
    EVALUATE = "evaluate"
    REAL = "real"

    @property
    def place(self) -> int:
        """In the order of the stages."""
        return list(Stage).index(self)
