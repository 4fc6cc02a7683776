r"""How logs of agents are read as transitions: a small TOML file, which leaves out what a log says itself.

Example:
    format = "chat"
    state_line = "saw"

    [paths]
    trajectory_id = "item_id"

    [constants]
    family = "alfworld"
    success = true

    [messages]
    skip = 2
    action = 'Action:\s*(.+)'
"""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from schemas.recipes.section import Section

LogFormat = Literal["transitions", "chat", "otel", "mlflow"]
LogField = Literal["trajectory_id", "task_id", "instruction", "family", "source", "success", "reward", "truncated"]


def _compiles(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if pattern and groups != 1:
        raise ValueError("needs one group, (...), around what is taken")
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles)]


class MessageMapping(Section):
    """Which messages of a conversation are actions, and which are what the environment answers."""

    at: str = ""
    """Where a record has its list of messages; empty: `messages` or `conversations`."""
    skip: int = Field(default=0, ge=0)
    """Messages before the first that counts: greetings, rules, examples. System messages never count."""
    action: Pattern = ""
    """Regular expression of an action within an agent's message, with one group; empty: all of it."""
    observation: Pattern = ""
    """The same of what the environment says."""
    agent: tuple[str, ...] = ("assistant", "gpt", "agent", "model", "ai")
    """Roles that act."""
    environment: tuple[str, ...] = ("user", "human", "tool", "function", "observation", "environment")
    """Roles that answer."""


class LogMapping(Section):
    """What a log says where."""

    format: LogFormat | None = None
    """Empty: each record shows which. transitions: rows with the columns of schemas/tables.py. chat: conversations (ShareGPT,
    AgentTraj) or OpenAI's messages. otel: OTLP in JSON. mlflow: traces of MLflow in JSON."""
    paths: dict[LogField, str] = Field(default={})
    """Where a record says it, with dots: `meta.task.0.id`; else under its own name."""
    constants: dict[LogField, bool | float | str] = Field(default={})
    """What is the same for all."""
    success_from: float = 1.0
    """A record that says a reward, and not success, succeeded from here on."""
    state_line: str = Field(default="", pattern=r"^[^:\n]*$")
    """Name of the one line that a state of plain text becomes; empty: each of its lines is one, by number."""
    messages: MessageMapping = Field(default=MessageMapping())
