"""Messages of the OpenEnv protocol (openenv-core 0.3), as far as a text environment needs them.

The package itself is not used: its web interface has pins that conflict with MLflow and transformers.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from schemas.records import Failure

MAX_ACTION_CHARACTERS = 4_096


class Action(BaseModel):
    """Action of a client."""

    model_config = ConfigDict(extra="forbid")

    action: str = Field(max_length=MAX_ACTION_CHARACTERS)
    """One line of text, in the environment's own language."""
    metadata: dict[str, Any] = {}
    """Metadata that OpenEnv's own clients send; ignored."""


class Observation(BaseModel):
    """Observation of a client."""

    task_id: str
    instruction: str
    """Goal of the task."""
    state: str
    success: bool = False
    truncated: bool = False
    """True if the episode was cut off at the step limit."""
    failure: Failure | None = None
    """Reason why the episode cannot go on, neither won nor lost. It has no reward: leave it out of training."""


class State(BaseModel):
    """State of a session."""

    episode_id: str | None = None
    step_count: int = 0
    task_id: str | None = None


class ResetParameters(BaseModel):
    """Selection of the next episode; other parameters are ignored, as in OpenEnv."""

    seed: int | None = Field(default=None, ge=0)
    """Seed of the task; the same seed gives the same task."""
    episode_id: str | None = Field(default=None, max_length=255)
    """Client's own name of the episode."""
    task_id: str | None = None
    """Id of a task, instead of a seed; without either, the next task is used."""


class Reset(BaseModel):
    """Request to start an episode."""

    type: Literal["reset"]
    data: ResetParameters = ResetParameters()


class StepTaken(BaseModel):
    """Request to take an action."""

    type: Literal["step"]
    data: Action


class StateAsked(BaseModel):
    """Request for the state of the session."""

    type: Literal["state"]


class Close(BaseModel):
    """Request to end the session."""

    type: Literal["close"]


Asked = Annotated[Reset | StepTaken | StateAsked | Close, Field(discriminator="type")]
asked_in: TypeAdapter[Reset | StepTaken | StateAsked | Close] = TypeAdapter(Asked)

ErrorCode = Literal[
    "INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR", "EXECUTION_ERROR", "CAPACITY_REACHED", "SESSION_ERROR"
]
"""Error codes of OpenEnv."""


def observed(seen: Observation, *, reward: float | None, done: bool) -> dict[str, Any]:
    """Return an observation message."""
    data = {"observation": seen.model_dump(mode="json"), "reward": reward, "done": done}
    return {"type": "observation", "data": data}


def stands(state: State) -> dict[str, Any]:
    """Return a state message."""
    return {"type": "state", "data": state.model_dump()}


def refused(code: ErrorCode, message: str) -> dict[str, Any]:
    """Return an error message."""
    return {"type": "error", "data": {"code": code, "message": message}}
