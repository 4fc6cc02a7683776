"""Read logged transitions: every row is either accepted or quarantined with a reason."""

import hashlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from schemas.errors import DataError
from schemas.records import AgentTask, Step, Trajectory, Turn
from schemas.tables import LOGGED_TRANSITIONS
from tasks.logs.episodes import Episodes, distinct
from tasks.logs.rules import in_order, reasons_against, trajectories_in
from tasks.logs.sources.files import files_in
from tasks.logs.sources.records import RAW_CHARACTERS, Record, records_in


@dataclass
class ReadLog:
    """Content of a log: distinct episodes, and quarantined rows with reasons."""

    num_rows: int = 0
    episodes: Episodes = field(default_factory=Episodes)
    quarantined: list[dict[str, str]] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def trajectories(self) -> list[Trajectory]:
        """Distinct episodes."""
        return self.episodes.trajectories

    @property
    def bad_share(self) -> float:
        """Share of rows that were quarantined."""
        return len(self.quarantined) / max(1, self.num_rows)

    def take_bad(self, records: list[Record]) -> None:
        """Add rejected records, each with its reason."""
        self.quarantined += map(quarantined, records)
        self.reasons.update(kind_of(one.reason) for one in records)


def read_log(path: Path, objection: Callable[[AgentTask], str | None] = lambda task: None) -> ReadLog:
    """Read the trajectories of a file, or of all files in a folder; no trajectory spans files.

    A row that breaks the schema is quarantined, and with it the rest of its trajectory, whose reason names the
    trajectory.

    Args:
        path: JSONL, JSON or Parquet file, or a folder of them.
        objection: Returns why a task, with its first state, is not the environment's, or None; trajectories of tasks
            with an objection are quarantined.

    Raises:
        DataError: there is no such file, it has another format, or columns are missing.
    """
    log = ReadLog()
    files = files_in(path).items()
    log.episodes = distinct((name, one) for name, file in files for one in _read_file(file, name, objection, log))
    return log


def _read_file(file: Path, name: str, objection: Callable[[AgentTask], str | None], log: ReadLog) -> list[Trajectory]:
    """Return the trajectories of a file, and add its rows and rejected records to the log."""
    records = list(records_in(file, name))
    readable = [one for one in records if not one.reason]
    frame = pd.DataFrame([one.value for one in readable])
    _require_columns(file, frame, records)
    reasons, taken = reasons_against(frame), list[Trajectory]()
    for trajectory_id, rows in trajectories_in(frame.drop(index=list(reasons))).items():
        trajectory = _trajectory(in_order(rows.values()))
        if problem := objection(trajectory.task):
            reasons |= dict.fromkeys(rows, f"{problem} (trajectory {trajectory_id})")
        else:
            taken.append(trajectory)
    bad = [Record(readable[at].where, {}, reason, as_it_came(frame.loc[at])) for at, reason in reasons.items()]
    log.num_rows += len(records)
    log.take_bad([*bad, *(one for one in records if one.reason)])
    return taken


def _require_columns(file: Path, frame: pd.DataFrame, records: list[Record]) -> None:
    if frame.empty and records:
        raise DataError(f"{records[0].where} {records[0].reason}, and nothing else in {file} can be read")
    required = {name for name, column in LOGGED_TRANSITIONS.columns.items() if column.required}
    missing = sorted(required - set(frame.columns))
    if missing:
        raise DataError(f"{file}: columns missing: {', '.join(missing)}. `dreamgym ingest` reads logs of other kinds")


def as_it_came(row: pd.Series) -> str:
    """Return a row as JSON."""
    return row.to_json(default_handler=str) or ""


def quarantined(record: Record) -> dict[str, str]:
    """Return the row of the quarantine table for a rejected record."""
    key = hashlib.sha256(f"{record.where}\x1f{record.raw}".encode(errors="replace")).hexdigest()
    return {"row_id": key, "reason": record.reason, "where": record.where, "raw": record.raw[:RAW_CHARACTERS]}


def kind_of(reason: str) -> str:
    """Return a reason without the part that is particular to one row."""
    return reason.split(" (", maxsplit=1)[0]


def _trajectory(rows: list[dict[str, Any]]) -> Trajectory:
    first = rows[0]
    task = AgentTask(
        first["task_id"], first["instruction"], first["split"], first["family"], int(first["seed"]), first["state"]
    )
    turns = [
        Turn(
            r["state"],
            r["action"],
            Step(r["next_state"], float(r["reward"]), bool(r["done"]), bool(r["success"])),
            thought=r.get("thought", ""),
        )
        for r in rows
    ]
    truncated, name = bool(rows[-1]["truncated"]), first["trajectory_id"]
    return Trajectory(task, "real", turns, truncated=truncated, source=first["source"], episode_id=name)
