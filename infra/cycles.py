"""Summaries of finished cycles: small JSON files in home, for the command line."""

import json
from typing import Any

from infra.object_store import write_durably
from infra.settings import settings


def summaries() -> list[dict[str, Any]]:
    """Every cycle of this home, oldest first."""
    paths = sorted((settings().home / "cycles").glob("*.json"), key=lambda path: path.stat().st_mtime)
    return [json.loads(path.read_text()) for path in paths]


def save_summary(summary: dict[str, Any]) -> None:
    """Keep a summary."""
    folder = settings().home / "cycles"
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(folder / f"{summary['cycle_id']}.json", json.dumps(summary, indent=1, default=str).encode())
