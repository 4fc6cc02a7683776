"""Summaries of finished cycles: small JSON objects by name, for the command line."""

import json
from typing import Any

from infra.blobs import open_blobs
from infra.settings import settings

_FOLDER = "cycles/"


def summaries() -> list[dict[str, Any]]:
    """Every cycle that finished here, oldest first."""
    blobs = open_blobs(settings())
    stored = [json.loads(blobs.read(key)) for key in blobs.keys(_FOLDER)]
    return sorted(stored, key=lambda summary: summary["finished_utc"])


def summary_of(cycle_id: str) -> dict[str, Any] | None:
    """Of one cycle, by its whole id; None if it never finished."""
    blobs, key = open_blobs(settings()), f"{_FOLDER}{cycle_id}.json"
    return json.loads(blobs.read(key)) if blobs.holds(key) else None


def save_summary(summary: dict[str, Any]) -> None:
    """Keep a summary, in place of an earlier one of the same cycle."""
    content = json.dumps(summary, indent=1, default=str).encode()
    open_blobs(settings()).write(f"{_FOLDER}{summary['cycle_id']}.json", content)
