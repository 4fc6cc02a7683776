"""Print the ledger of promotions."""

from typing import Any

from rich.console import Console
from rich.table import Table

from infra.promotion.ledger import Ledger
from infra.settings import settings
from infra.storage.blobs import open_blobs


def history_rows() -> list[dict[str, Any]]:
    """Return the ledger's entries as plain data, oldest first.

    Raises:
        IntegrityError: the ledger's content is not what was written.
    """
    history = Ledger(open_blobs(settings())).history()
    return [
        {
            "fence": fence,
            "time_utc": entry.time_utc,
            "decision": str(entry.decision),
            "policy": entry.policy.sha256 if entry.policy else None,
            "gate": entry.gate,
            "passed": entry.passed,
            "by": entry.by,
            "reason": entry.reason,
        }
        for fence, entry in enumerate(history.entries, 1)
    ]


def print_history(rows: list[dict[str, Any]]) -> None:
    """Print the entries as a table."""
    table = Table(box=None, caption="The policy that was promoted last is champion.", caption_justify="left")
    for heading in ("time (UTC)", "decision", "policy"):
        table.add_column(heading, no_wrap=True)
    table.add_column("by", overflow="fold")
    for row in rows:
        verdict = f"{row['decision']}: {'passed' if row['passed'] else 'refused'}"
        table.add_row(
            row["time_utc"][:16].replace("T", " "),
            verdict if row["decision"] == "judged" else row["decision"],
            (row["policy"] or "none")[:8],
            f"{row['by']}: {row['reason']}" if row["reason"] else row["by"],
        )
    Console().print(table)
