"""Tables of the replay store, and the rules that a logged transition must meet to enter.

pandera checks frames (checks below), Arrow fixes the stored schema. Dreamt and real reward never share a
column; a missing one is null, never 0.
"""

import re

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pyarrow as arrow

from schemas.state_text import lines_of

SCHEMA_VERSION = 3
"""Version of these tables. Tables of an earlier version are migrated when opened (infra/storage/table_migration.py)."""

LOG_SCHEMA_VERSION = 1
"""Version of logged transitions; logs of another version are quarantined rather than guessed at."""

MAX_TEXT_BYTES = 32_768
"""Maximum size of a state, action or instruction; beyond it, a text is no textual abstraction any more."""
_MAX_BYTES_OF_A_CHARACTER = 4

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_TEMPLATE = re.compile(
    r"\[(?:end|task|state|action|demo|history|think|next|outcome|vary)\]|<\|[^|>]{1,40}\|>|</?s>|\[/?INST\]"
)
_PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}


def without_template(text: str) -> str:
    """Return a text without control characters, and with its prompt markers and chat-template tokens defused."""
    return _CONTROL.sub(" ", _TEMPLATE.sub(_defused, text))


def _defused(found: re.Match[str]) -> str:
    return f"({found.group().strip('[]<>|/')})"


def _clean() -> list[pa.Check]:
    return [
        pa.Check(lambda texts: ~texts.str.contains(_CONTROL.pattern), error="contains control characters"),
        pa.Check(
            lambda texts: ~texts.str.contains(_TEMPLATE.pattern),
            error="contains a prompt marker or chat-template token",
        ),
    ]


def _text(*, nullable: bool = False, empty: bool = False) -> pa.Column:
    """Return a text column that rejects control characters, template tokens and oversized text."""
    checks = [pa.Check(_are_short, error=f"longer than {MAX_TEXT_BYTES} bytes"), *_clean()]
    if not empty:
        checks.append(pa.Check(lambda texts: texts.str.strip() != "", error="is empty"))
    return pa.Column(str, checks, nullable=nullable)


def _are_short(texts: pd.Series) -> pd.Series:
    surely = texts.str.len() <= MAX_TEXT_BYTES // _MAX_BYTES_OF_A_CHARACTER
    return surely if surely.all() else texts.map(lambda text: len(text.encode(errors="replace")) <= MAX_TEXT_BYTES)


def _state() -> pa.Column:
    """Return a text column of states."""
    column = _text()
    column.checks.append(pa.Check(_are_states, error="is not lines of the form '- name: value', each name once"))
    return column


def _thought() -> pa.Column:
    """Return the column of the agent's own words, which a log need not have."""
    return pa.Column(str, _clean(), nullable=False, required=False)


def _are_states(texts: pd.Series) -> pd.Series:
    return pd.Series(map(_is_state, texts.to_numpy(object)), texts.index, bool)


def _is_state(text: str) -> bool:
    try:
        return bool(lines_of(text))
    except ValueError:
        return False


LOGGED_TRANSITIONS = pa.DataFrameSchema(
    {
        "trajectory_id": _text(),
        "turn": pa.Column(int, pa.Check.ge(0, error="is negative"), coerce=True),
        "task_id": _text(),
        "instruction": _text(),
        "family": _text(),
        "split": pa.Column(str, pa.Check.eq("train", error="is not train: tasks of other splits are held out")),
        "state": _state(),
        "action": _text(),
        "next_state": _state(),
        "reward": pa.Column(float, pa.Check(np.isfinite, error="is no finite number"), coerce=True),
        "done": pa.Column(bool, coerce=True),
        "success": pa.Column(bool, coerce=True),
        "truncated": pa.Column(bool, coerce=True),
        "source": _text(),
        "thought": _thought(),
        "seed": pa.Column(int, coerce=True),
        "schema_version": pa.Column(
            int, pa.Check.eq(LOG_SCHEMA_VERSION, error=f"is not {LOG_SCHEMA_VERSION}"), coerce=True
        ),
    },
    strict=False,
)
"""One row per logged real transition, as it is imported."""


_ROW_ID = arrow.field("row_id", arrow.string(), nullable=False, metadata=_PRIMARY_KEY)

_PROVENANCE = [
    *(arrow.field(n, arrow.string(), nullable=False) for n in ("policy", "experience_model", "recipe", "run")),
    *(arrow.field(n, arrow.int64(), nullable=False) for n in ("seed", "round", "schema_version")),
]
"""Provenance columns, on every row of every table except quarantine."""


def transitions_schema(num_dimensions: int) -> arrow.Schema:
    """Return the schema of stored transitions, real and dreamt."""
    text, number = arrow.string(), arrow.int64()
    return arrow.schema(
        [
            _ROW_ID,
            *(
                arrow.field(n, text, nullable=False)
                for n in ("trajectory_id", "task_id", "instruction", "family", "split")
            ),
            arrow.field("turn", number, nullable=False),
            *(arrow.field(n, text, nullable=False) for n in ("state", "thought", "action", "reasoning", "next_state")),
            arrow.field("origin", text, nullable=False),
            arrow.field("real_reward", arrow.float64()),
            arrow.field("dream_reward", arrow.float64()),
            *(arrow.field(n, arrow.bool_(), nullable=False) for n in ("done", "success", "truncated")),
            arrow.field("failure", text),
            arrow.field("demonstrations", arrow.list_(text), nullable=False),
            arrow.field("source", text, nullable=False),
            *_PROVENANCE,
            arrow.field("vector", arrow.list_(arrow.float32(), num_dimensions), nullable=False),
        ]
    )


QUARANTINE_SCHEMA = arrow.schema(
    [
        _ROW_ID,
        arrow.field("reason", arrow.string(), nullable=False),
        arrow.field("where", arrow.string(), nullable=False),
        arrow.field("raw", arrow.string(), nullable=False),
    ]
)
"""Rejected rows, unchanged, each with the reason."""

AGENT_TASKS_SCHEMA = arrow.schema(
    [
        _ROW_ID,
        *(
            arrow.field(n, arrow.string(), nullable=False)
            for n in ("task_id", "instruction", "split", "family", "initial_state", "parent_id")
        ),
        arrow.field("reward_entropy", arrow.float64()),
        *_PROVENANCE,
    ]
)
"""The agent tasks of each round, with the reward entropy they were drawn by; null: not tried before."""

EVALUATIONS_SCHEMA = arrow.schema(
    [
        _ROW_ID,
        *(arrow.field(n, arrow.string(), nullable=False) for n in ("task_id", "family")),
        arrow.field("real_success", arrow.bool_()),
        arrow.field("dream_success", arrow.bool_()),
        arrow.field("num_steps", arrow.int64(), nullable=False),
        *_PROVENANCE,
    ]
)
"""One row per evaluated episode."""
