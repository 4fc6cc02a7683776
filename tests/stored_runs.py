"""Records of finished runs, for tests of code that reads them."""

from infra.storage.run_records import records, save_record


def finished_run(run_id: str, **more) -> dict:
    """Save and return the record of a run that finished after all stored ones; `more` sets further fields."""
    record = {
        "run_id": run_id,
        "number": len(records()) + 1,
        "recipe": {"name": "test", "seed": 0},
        "status": "finished",
        "trigger": "by hand",
        "reasons": [],
        "asked_again": False,
        "until": "real",
        "reached": "real",
        "started_utc": "2026-01-02T03:04:05+00:00",
        "finished_utc": "2026-01-02T03:04:05+00:00",
        "key": None,
        "left_behind": {},
        "lineage": {},
        "promoted": "",
        **more,
    }
    save_record(record)
    return record
