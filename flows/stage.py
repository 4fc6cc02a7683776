"""Stages of a run, in a light module so that the command line can import them at once."""

from enum import StrEnum


class Stage(StrEnum):
    """Stage after which a run may stop."""

    INGEST = "ingest"
    EXPERIENCE = "experience"
    DREAM = "dream"
    EVALUATE = "evaluate"
    REAL = "real"

    @property
    def place(self) -> int:
        """Position in the order of the stages."""
        return list(Stage).index(self)
