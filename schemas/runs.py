"""Runs: what is known of one execution of a recipe, and what it was made of.

A run's record is plain data that is kept by its id: what is below, then results, lineage and gate as they come to be.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from schemas.recipes.digests import digest_of
from schemas.records import Reference

Record = dict[str, Any]
"""What is stored of a run (RunHead), and what it came to (flows/running/run_recipe.py)."""


class Trigger(StrEnum):
    """Who began a run."""

    HAND = "by hand"
    SCHEDULE = "schedule"
    EVENT = "event"


class Status(StrEnum):
    """What became of a run."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    """Interrupted, or its process is gone; the same command resumes it."""


@dataclass(frozen=True, slots=True)
class KeyParts:
    """What the cache key of a versioned task is made of; `dreamgym why` compares those of two steps."""

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
    """Everything that is a reason to begin a run when it changes."""

    model_config = ConfigDict(frozen=True)

    recipe: dict[str, Any]
    """Fields that differ from the recorded defaults, with dotted names."""
    data: dict[str, str]
    """Digests of log files, and of what the recipe names by folder, by name."""
    code: dict[str, str]
    """Digests of the files that its tasks may run."""
    packages: dict[str, str]
    """Versions of the packages in it that change numbers."""
    settings: dict[str, str]
    """What of the settings changes numbers."""


class LeftBehind(BaseModel):
    """What earlier runs left behind and this one reads, fixed when it is begun. It is no reason to begin one."""

    model_config = ConfigDict(frozen=True)

    table_tag: str = ""
    """Pins the version of the transitions whose real episodes are read; empty: none are."""
    champion: Reference | None = None
    """The policy in force when the run was begun."""
    experience_model: Reference | None = None
    """The experience model of the last run of the recipe that has one."""
    experience: list[Reference] = Field(default=[])
    """What that experience model has learnt."""
    backbone: Reference | None = None
    """What it was fitted from at first."""


class RunHead(BaseModel):
    """A run as it is begun."""

    run_id: str
    number: int
    """Orders the runs of a home, whatever its clock said."""
    recipe: dict[str, Any]
    recipe_digest: str
    status: Status = Status.RUNNING
    trigger: Trigger = Trigger.HAND
    reasons: list[str] = Field(default=[])
    """Why it was begun, a sentence each."""
    asked_again: bool = False
    until: str
    """The last stage that it was asked for."""
    reached: str = ""
    """The last stage that it came to the end of; empty before any."""
    started_utc: str
    finished_utc: str = ""
    key: RunKey
    left_behind: LeftBehind = LeftBehind()
