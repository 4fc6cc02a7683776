"""Runs: the facts known about one execution of a recipe, and what it was built from.

A run's record is plain data stored by its id: the fields below first, then results, lineage and gate as they appear.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from schemas.recipes.digests import digest_of
from schemas.records import Reference

Record = dict[str, Any]
"""Stored record of a run: its head (RunHead), and its results (flows/running/run_recipe.py)."""


class Trigger(StrEnum):
    """Cause that started a run."""

    HAND = "by hand"
    SCHEDULE = "schedule"
    EVENT = "event"


class Status(StrEnum):
    """State of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    """Interrupted, or its process is gone; the same command resumes it."""


@dataclass(frozen=True, slots=True)
class KeyParts:
    """Parts of the cache key of a versioned task; `dreamgym why` compares those of two steps."""

    task: str
    module: str
    inputs: dict[str, Any]
    code: dict[str, str]
    packages: dict[str, str]
    settings: dict[str, str]

    @property
    def key(self) -> str:
        """Sha256 of all parts."""
        return digest_of(asdict(self))


class RunKey(BaseModel):
    """Everything that is a reason to start a run when it changes."""

    model_config = ConfigDict(frozen=True)

    recipe: dict[str, Any]
    """Fields that differ from the recorded defaults, by dotted name."""
    data: dict[str, str]
    """Digests by name of log files and of the models that the recipe names by folder."""
    code: dict[str, str]
    """Digests of the files that the run's tasks may execute."""
    packages: dict[str, str]
    """Versions of the packages in that code that change numbers."""
    settings: dict[str, str]
    """Settings that change numbers."""


class LeftBehind(BaseModel):
    """Results of earlier runs that this one reads, fixed when it starts. They are no reason to start a run."""

    model_config = ConfigDict(frozen=True)

    table_tag: str = ""
    """Tag of the table version whose real episodes are read; empty: none are read."""
    champion: Reference | None = None
    """The champion when the run started."""
    experience_model: Reference | None = None
    """The experience model of the recipe's last run that has one."""
    experience: list[Reference] = Field(default=[])
    """Data that this experience model was fitted on."""
    backbone: Reference | None = None
    """Backbone that it was first fitted from."""


class RunHead(BaseModel):
    """A run's record when it starts."""

    run_id: str
    number: int
    """Sequence number that orders the runs of a home, independent of the clock."""
    recipe: dict[str, Any]
    recipe_digest: str
    status: Status = Status.RUNNING
    trigger: Trigger = Trigger.HAND
    reasons: list[str] = Field(default=[])
    """Reasons why it was started, one sentence each."""
    asked_again: bool = False
    until: str
    """The last requested stage."""
    reached: str = ""
    """The last completed stage; empty before the first."""
    started_utc: str
    finished_utc: str = ""
    key: RunKey
    left_behind: LeftBehind = LeftBehind()
