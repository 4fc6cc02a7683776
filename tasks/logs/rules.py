"""Rules for rows of logged transitions: for each by itself, and for those of a trajectory together."""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pandera.errors

from schemas.tables import LOGGED_TRANSITIONS

_EXACT: dict[str, tuple[type, ...]] = {
    name: (str,) if column.dtype.type is str else (bool, np.bool_)
    for name, column in LOGGED_TRANSITIONS.columns.items()
    if column.dtype.type in (str, np.bool_)
}
"""Columns whose values must have their type without conversion: "false" is not False, and 7 is no name."""

_TOGETHER = ["trajectory_id", "turn", "state", "next_state", "done", "success", "truncated"]
"""Columns that the rules for a whole trajectory look at."""

_Row = dict[str, Any]


def reasons_against(frame: pd.DataFrame) -> dict[Any, str]:
    """Return why rows are rejected, by index.

    A row that breaks the schema takes the rest of its trajectory with it.
    """
    reasons = _row_reasons(frame)
    return reasons | _trajectory_reasons(frame, reasons)


def _row_reasons(frame: pd.DataFrame) -> dict[Any, str]:
    """Return the first reason of each row that breaks the schema."""
    reasons: dict[Any, str] = {}
    for name in frame.columns.intersection(list(LOGGED_TRANSITIONS.columns)):
        for index in frame.loc[frame[name].isna()].index:
            reasons.setdefault(index, f"{name} is missing")
    for name, kind in _EXACT.items():
        for index, value in frame[name].items() if name in frame else ():
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
    """Return rows whose value is not of the column's most frequent type."""
    kinds = frame[column].map(type)
    return list(frame.index[kinds != kinds.mode().iloc[0]]) if len(kinds.mode()) else []


def trajectories_in(frame: pd.DataFrame) -> dict[str, dict[Any, _Row]]:
    """Return the rows of each trajectory by index, in the order of the frame."""
    found: dict[str, dict[Any, _Row]] = defaultdict(dict)
    for index, row in zip(frame.index, frame.to_dict("records"), strict=True):
        if isinstance(row["trajectory_id"], str):
            found[row["trajectory_id"]][index] = row
    return found


def _trajectory_reasons(frame: pd.DataFrame, bad: dict[Any, str]) -> dict[Any, str]:
    """Return reasons for the other rows of trajectories that are incomplete or contradictory."""
    reasons: dict[Any, str] = {}
    for name, rows in trajectories_in(frame.loc[:, _TOGETHER]).items():
        if problem := _problem(rows, bad):
            reasons |= {index: f"{problem} (trajectory {name})" for index in rows if index not in bad}
    return reasons


def _problem(rows: dict[Any, _Row], bad: dict[Any, str]) -> str | None:
    if any(index in bad for index in rows):
        return "another row of the trajectory is bad"
    ordered = in_order(rows.values())
    turns = [int(row["turn"]) for row in ordered]
    if len(set(turns)) < len(turns):
        return "a step stands twice in the trajectory"
    if turns != list(range(len(turns))):
        return "a step of the trajectory is missing"
    return _contradiction(ordered)


def in_order(rows: Any) -> list[_Row]:
    """Sort the rows of one trajectory by turn."""
    return sorted(rows, key=lambda row: int(row["turn"]))


def _contradiction(ordered: Sequence[_Row]) -> str | None:
    """Return how the ordered steps of a complete trajectory contradict each other, or None."""
    if any(one["next_state"] != after["state"] for one, after in pairwise(ordered)):
        return "a state is not the one that the step before led to"
    if any(row["done"] for row in ordered[:-1]):
        return "the trajectory continues after done"
    if any(row["success"] and not row["done"] for row in ordered):
        return "success without done"
    if not (ordered[-1]["done"] or ordered[-1]["truncated"]):
        return "the trajectory ends without done or truncated"
    return None
