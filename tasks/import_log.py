"""Reading a file of logged transitions: every row is either taken or quarantined with a reason."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.errors

from schemas.errors import DataError
from schemas.records import AgentTask, Step, Trajectory, Turn
from schemas.tables import LOGGED_TRANSITIONS

_EXACT: dict[str, tuple[type, ...]] = {
    name: (str,) if column.dtype.type is str else (bool, np.bool_)
    for name, column in LOGGED_TRANSITIONS.columns.items()
    if column.dtype.type in (str, np.bool_)
}
"""Columns whose values must be of their type as they come: "false" is not False, and 7 is no name."""

_RAW_CHARACTERS = 2_000
"""How much of a bad row is kept as it came."""


@dataclass
class ReadLog:
    """What a file held."""

    num_rows: int
    trajectories: list[Trajectory] = field(default_factory=list)
    quarantined: list[dict[str, str]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def bad_share(self) -> float:
        """Share of rows that were quarantined."""
        return len(self.quarantined) / max(1, self.num_rows)


def read_log(path: Path, objection: Callable[[AgentTask], str | None] = lambda task: None) -> ReadLog:
    """Trajectories of a JSONL or Parquet file.

    A row that breaks the schema is quarantined, and with it the rest of its trajectory, whose reason
    names the row that broke it.

    Args:
        path: The file.
        objection: Why a task, with its first state, is none of the environment's; such trajectories are quarantined.

    Raises:
        DataError: no such file, another format, or columns missing.
    """
    frame, unreadable = _frame(path)
    missing = sorted(set(LOGGED_TRANSITIONS.columns) - set(frame.columns))
    if missing:
        raise DataError(f"{path}: columns missing: {', '.join(missing)}")
    reasons = _row_reasons(frame)
    reasons |= _trajectory_reasons(frame, reasons)
    log = ReadLog(len(frame) + len(unreadable))
    for name, rows in frame.drop(index=list(reasons)).groupby("trajectory_id", sort=False):
        trajectory = _trajectory(rows.sort_values("turn"))
        problem = objection(trajectory.task)
        if problem:
            reasons |= dict.fromkeys(rows.index, f"{problem} (trajectory {name})")
        else:
            log.trajectories.append(trajectory)
    for index, reason in reasons.items():
        raw = frame.loc[index].to_json(default_handler=str)
        _quarantine(log, reason, f"{path.name} row {index}", raw)
    for where, raw in unreadable:
        _quarantine(log, "is no JSON object of valid Unicode", f"{path.name} {where}", raw)
    return log


def file_digest(path: str) -> str:
    """Sha256 of a file that is to be imported; empty for none.

    Raises:
        DataError: no such file.
    """
    if not path:
        return ""
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file; ingest.path is a JSONL or Parquet file of transitions")
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def _quarantine(log: ReadLog, reason: str, where: str, raw: str) -> None:
    key = hashlib.sha256(f"{where}\x1f{raw}".encode(errors="replace")).hexdigest()
    log.quarantined.append({"row_id": key, "reason": reason, "where": where, "raw": raw[:_RAW_CHARACTERS]})
    log.reasons[reason.split(" (", maxsplit=1)[0]] += 1


def _frame(path: Path) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    if path.suffix == ".parquet":
        return _parquet(path), []
    if path.suffix not in (".jsonl", ".ndjson"):
        raise DataError(f"{path}: format {path.suffix or 'without suffix'} is not known; use .jsonl or .parquet")
    rows: dict[int, dict[str, Any]] = {}
    unreadable: list[tuple[str, str]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines()):
        try:
            rows[number] = _json_object(line)
        except ValueError:
            unreadable.append((f"line {number + 1}", line))
    return pd.DataFrame.from_dict(rows, orient="index"), unreadable


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path).reset_index(drop=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {error}") from error


def _json_object(line: str) -> dict[str, Any]:
    value = json.loads(line)
    if not isinstance(value, dict):
        raise ValueError("no object")
    json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is no text, and no store would take it
    return value


def _row_reasons(frame: pd.DataFrame) -> dict[Any, str]:
    """First reason of each row that breaks the schema."""
    reasons: dict[Any, str] = {}
    for name in LOGGED_TRANSITIONS.columns:
        for index in frame.loc[frame[name].isna()].index:
            reasons.setdefault(index, f"{name} is missing")
    for name, kind in _EXACT.items():
        for index, value in frame[name].items():
            if not isinstance(value, kind):
                reasons.setdefault(index, f"{name} has the wrong type")
    whole = frame.drop(index=list(reasons))
    try:
        LOGGED_TRANSITIONS.validate(whole, lazy=True)
    except pandera.errors.SchemaErrors as errors:
        for case in errors.failure_cases.to_dict("records"):
            if case["index"] is not None:
                reasons.setdefault(case["index"], f"{case['column']} {_readable(str(case['check']))}")
            else:
                for index in _uncoercible(whole, case["column"]):
                    reasons.setdefault(index, f"{case['column']} has the wrong type")
    return reasons


def _readable(check: str) -> str:
    return "has the wrong type" if check.startswith(("coerce_dtype", "dtype")) else check


def _uncoercible(frame: pd.DataFrame, column: str) -> list[Any]:
    """Rows whose value is not of the type that most of the column has."""
    kinds = frame[column].map(type)
    return list(frame.index[kinds != kinds.mode().iloc[0]]) if len(kinds.mode()) else []


def _trajectory_reasons(frame: pd.DataFrame, bad: dict[Any, str]) -> dict[Any, str]:
    """Reasons for rows of trajectories that are not whole."""
    reasons: dict[Any, str] = {}
    nameless = [index for index, name in frame["trajectory_id"].items() if not isinstance(name, str)]
    named = frame.drop(index=nameless)
    for name, rows in named.groupby("trajectory_id", sort=False):
        problem = _problem(rows, bad)
        if problem:
            reasons |= {index: f"{problem} (trajectory {name})" for index in rows.index if index not in bad}
    return reasons


def _problem(rows: pd.DataFrame, bad: dict[Any, str]) -> str | None:
    if any(index in bad for index in rows.index):
        return "another row of the trajectory is bad"
    turns = sorted(int(turn) for turn in rows["turn"])
    if len(set(turns)) < len(turns):
        return "a step stands twice in the trajectory"
    if turns != list(range(len(turns))):
        return "a step of the trajectory is missing"
    return _contradiction(rows.sort_values("turn"))


def _contradiction(ordered: pd.DataFrame) -> str | None:
    """What the steps of a whole trajectory, in order, say against each other."""
    if list(ordered["next_state"])[:-1] != list(ordered["state"])[1:]:
        return "a state is not the one that the step before led to"
    if any(ordered["done"][:-1]):
        return "the trajectory goes on after done"
    if any(ordered["success"] & ~ordered["done"].astype(bool)):
        return "success without done"
    if not (ordered["done"].iloc[-1] or ordered["truncated"].iloc[-1]):
        return "the trajectory ends without done or truncated"
    return None


def _trajectory(rows: pd.DataFrame) -> Trajectory:
    first = rows.iloc[0]
    task = AgentTask(
        first["task_id"], first["instruction"], first["split"], first["family"], int(first["seed"]), first["state"]
    )
    turns = [
        Turn(r["state"], r["action"], Step(r["next_state"], float(r["reward"]), bool(r["done"]), bool(r["success"])))
        for r in rows.to_dict("records")
    ]
    return Trajectory(task, "real", turns, truncated=bool(rows["truncated"].iloc[-1]), source=first["source"])
