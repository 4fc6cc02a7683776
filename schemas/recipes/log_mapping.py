r"""Mapping from agent logs to transitions: a small TOML file that gives only what the log itself does not say.

Example:
    format = "chat"
    state_line = "saw"
    episodes_at = "runs"

    [names]
    role = "speaker"
    text = "utterance"

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

LogField = Literal["trajectory_id", "task_id", "instruction", "family", "source", "success", "reward", "truncated"]
ItemField = Literal["role", "text", "call", "arguments", "observation", "action", "next_observation", "thought", "step"]
"""Fields of a message, and of a step."""


def _compiles(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from None
    if pattern and groups != 1:
        raise ValueError("needs one group, (...), around what is taken")
    return pattern


def _in_small_letters(roles: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(str.lower, roles))


Pattern = Annotated[str, AfterValidator(_compiles)]
Roles = Annotated[tuple[str, ...], AfterValidator(_in_small_letters)]
"""Names of those who speak, whatever the size of their letters."""


class MessageMapping(Section):
    """Split of a conversation's messages into actions and observations."""

    at: str = ""
    """Path of the list of messages in a record; empty: their usual names."""
    skip: int = Field(default=0, ge=0)
    """Number of leading messages to skip: greetings, rules, examples. System messages are always skipped."""
    action: Pattern = ""
    """Regular expression that extracts the action from an agent's message, with one group; empty: the whole message."""
    observation: Pattern = ""
    """Regular expression that extracts the observation from an environment's message; like `action`."""
    agent: Roles = ("assistant", "gpt", "agent", "model", "ai")
    """Roles whose messages are actions."""
    environment: Roles = ("user", "human", "tool", "function", "observation", "environment")
    """Roles whose messages are observations."""


class LogMapping(Section):
    """Mapping from a log's fields to those of transitions."""

    format: str = ""
    """Kind of the log, by its name in tasks/logs/known_kinds.py; empty: detected per record. transitions: rows with the
    columns of schemas/tables.py. chat: conversations, as lists of messages."""
    episodes_at: str = ""
    """Dotted path of the list of episodes in a record, each of which also has the record's other fields; empty: their
    usual names."""
    joined_by: str = ""
    """Dotted path of the id that the records of an episode share, each a message, or a step if the format says so."""
    file_is_episode: bool = False
    """All records of a file are one episode, each a message, or a step if the format says so."""
    names: dict[ItemField, str] = Field(default={})
    """Dotted path of each field in a message or a step, where it has no usual name. Fields of a message: role, text, call
    (the name of a tool), arguments. Fields of a step: observation, action, next_observation, thought, step."""
    paths: dict[LogField, str] = Field(default={})
    """Dotted path of each field in a record, e.g. `meta.task.0.id`; default: its own name, or another usual one. Fields:
    trajectory_id, task_id, instruction, family, source, success, reward, truncated."""
    constants: dict[LogField, bool | float | str] = Field(default={})
    """Values that are the same for all records."""
    success_from: float = 1.0
    """Minimum reward that counts as success, for records that give a reward and no success."""
    success_otherwise: bool | None = None
    """Success of records that give neither a success nor a reward."""
    state_line: str = Field(default="", pattern=r"^[^:\n]*$")
    """Name of the single line that a plain-text state becomes; empty: its lines become numbered lines."""
    states: Literal["observations", "conversations"] = "observations"
    """States of chats. observations: what the agent saw last. conversations: all messages before an answer, which is the
    whole text of the agent's message, as in an environment of agent loops."""
    messages: MessageMapping = Field(default=MessageMapping())
