"""What OpenEnv's clients say and hear (openenv-core 0.3), as far as an environment of text needs it.

Its package is not used: it brings a web interface whose pins fight those of MLflow and transformers. The protocol is small.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from schemas.records import Failure

MAX_ACTION_CHARACTERS = 4_096


class Action(BaseModel):
    """What a client does."""

    model_config = ConfigDict(extra="forbid")

    action: str = Field(max_length=MAX_ACTION_CHARACTERS)
    """A line of text, in the environment's own words."""
    metadata: dict[str, Any] = {}
    """OpenEnv's own clients send it; it is not looked at."""


class Observation(BaseModel):
    """What a client sees."""

    task_id: str
    instruction: str
    """What is to be done."""
    state: str
    success: bool = False
    truncated: bool = False
    """Whether the episode was cut off at the step limit."""
    failure: Failure | None = None
    """Why the episode cannot go on, though nothing was won or lost: there is no reward then. Leave it out of training."""


class State(BaseModel):
    """Where a session stands."""

    episode_id: str | None = None
    step_count: int = 0
    task_id: str | None = None


class ResetParameters(BaseModel):
    """Which episode comes next; others than these are not looked at, as in OpenEnv."""

    seed: int | None = Field(default=None, ge=0)
    """The same seed gives the same task."""
    episode_id: str | None = Field(default=None, max_length=255)
    """What the client calls it."""
    task_id: str | None = None
    """A task by name, instead of a seed; with neither the next one comes."""


class Reset(BaseModel):
    """Begin an episode."""

    type: Literal["reset"]
    data: ResetParameters = ResetParameters()


class StepTaken(BaseModel):
    """Act."""

    type: Literal["step"]
    data: Action


class StateAsked(BaseModel):
    """Ask where the session stands."""

    type: Literal["state"]


class Close(BaseModel):
    """End the session."""

    type: Literal["close"]


Asked = Reset | StepTaken | StateAsked | Close
asked_in: TypeAdapter[Asked] = TypeAdapter(Asked)
TYPES = ("reset", "step", "state", "close")

ErrorCode = Literal[
    "INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR", "CAPACITY_REACHED", "SESSION_ERROR"
]
"""OpenEnv's own."""


def observed(seen: Observation, *, reward: float | None, done: bool) -> dict[str, Any]:
    """An observation as clients expect it."""
    data = {"observation": seen.model_dump(mode="json"), "reward": reward, "done": done}
    return {"type": "observation", "data": data}


def stands(state: State) -> dict[str, Any]:
    """Where a session stands, as clients expect it."""
    return {"type": "state", "data": state.model_dump()}


def refused(code: ErrorCode, message: str) -> dict[str, Any]:
    """An error as clients expect it."""
    return {"type": "error", "data": {"code": code, "message": message}}
