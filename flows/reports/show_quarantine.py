"""Show what was quarantined and why: reasons with their counts, and examples."""

from collections import defaultdict
from typing import Any

from rich.console import Console
from rich.table import Table

from infra.settings import settings
from infra.storage.replay_store import ReplayStore
from tasks.logs.read_log import kind_of

_SHOWN_CHARACTERS = 300


def quarantined_by_reason(contains: str, limit: int) -> list[dict[str, Any]]:
    """Return reasons that contain a text, the most frequent first, each with its count and up to `limit` rows."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in ReplayStore(settings()).read("quarantine", columns=("reason", "where", "raw")):
        if contains in row["reason"]:
            groups[kind_of(row["reason"])].append(row)
    ordered = sorted(groups.items(), key=lambda one: -len(one[1]))
    return [{"reason": reason, "count": len(rows), "examples": rows[:limit]} for reason, rows in ordered]


def print_quarantined(groups: list[dict[str, Any]]) -> None:
    """Print reasons with counts, and where their examples are."""
    console = Console()
    if not groups:
        console.print("nothing is quarantined here for such a reason")
    for one in groups:
        table = Table("where", "beginning", title=f"{one['count']:,}: {one['reason']}", title_justify="left")
        for row in one["examples"]:
            table.add_row(row["where"], row["raw"][:_SHOWN_CHARACTERS])
        console.print(table, markup=False)
