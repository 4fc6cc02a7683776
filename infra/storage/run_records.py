"""Records of runs, one JSON object per run id, and the steps of each run in a separate object."""

import json
from typing import Any

from infra.settings import settings
from infra.storage.blobs import open_blobs
from infra.storage.lease import is_free, last_number
from schemas.runs import Record, Status

RUNS, OLDER = "runs/", "cycles/"
"""Folders of the records, and of the cycle summaries that homes of earlier versions contain."""
_STEPS = "run-steps/"


def records() -> list[Record]:
    """Return every run of this home, oldest first. A running run whose process is gone is shown as killed."""
    blobs = open_blobs(settings())
    stored = [json.loads(blobs.read(key)) for key in blobs.keys(RUNS)]
    known = {record["run_id"] for record in stored}
    summaries = (_of_an_older_home(json.loads(blobs.read(key))) for key in blobs.keys(OLDER))
    older = [one for one in summaries if one["run_id"] not in known]
    return [*sorted(older, key=lambda one: one["finished_utc"]), *sorted(map(_with_status, stored), key=_order)]


def _order(record: Record) -> tuple[int, str]:
    return record["number"], record["run_id"]


def _with_status(record: Record) -> Record:
    if record["status"] == Status.RUNNING and not _is_worked_on(record["run_id"]):
        return {**record, "status": Status.KILLED.value}
    return record


def _is_worked_on(run_id: str) -> bool:
    blobs = open_blobs(settings())
    number = last_number(blobs, run_id)
    return number > 0 and not is_free(blobs, run_id, number)


def _of_an_older_home(summary: dict[str, Any]) -> Record:
    """Return the record for a summary of a version without run ids; its cycle id becomes the run id."""
    finished = summary["finished_utc"]
    known = {"run_id": summary["cycle_id"], "number": 0, "status": Status.FINISHED.value, "trigger": "by hand"}
    stage = "real" if "sim_to_real" in summary["lineage"] else "evaluate" if summary.get("gate") else "ingest"
    unknown = {
        "reasons": [],
        "until": stage,
        "reached": stage,
        "key": None,
        "left_behind": {},
        "asked_again": False,
        "started_utc": finished,
        "promoted": "",
        "real_gate": {},
    }
    return {**known, **unknown, **summary}


def record_of(run_id: str) -> Record:
    """Return the stored record of one run by its full id."""
    blobs, key = open_blobs(settings()), f"{RUNS}{run_id}.json"
    if blobs.holds(key) or not blobs.holds(f"{OLDER}{run_id}.json"):
        return json.loads(blobs.read(key))
    return _of_an_older_home(json.loads(blobs.read(f"{OLDER}{run_id}.json")))


def create_record(record: Record) -> bool:
    """Store the record of a new run; return False if its id is taken."""
    return open_blobs(settings()).create(f"{RUNS}{record['run_id']}.json", _encoded(record))


def save_record(record: Record) -> None:
    """Store the record of a run, replacing the previous one."""
    open_blobs(settings()).write(f"{RUNS}{record['run_id']}.json", _encoded(record))


def save_steps(run_id: str, steps: dict[str, Any]) -> None:
    """Store a run's steps (infra/tracking/steps.py)."""
    open_blobs(settings()).write(f"{_STEPS}{run_id}.json", _encoded(steps))


def steps_of(run_id: str) -> dict[str, Any]:
    """Return a run's steps; empty if it was killed before it stored any, or comes from an older home."""
    blobs, key = open_blobs(settings()), f"{_STEPS}{run_id}.json"
    empty: dict[str, Any] = {"steps": [], "step_tasks": {}, "step_sections": {}}
    return json.loads(blobs.read(key)) if blobs.holds(key) else empty


def _encoded(value: Any) -> bytes:
    return json.dumps(value, indent=1, default=str).encode()
