"""Report whether recipes can run here, and what prevents them."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from infra.health import findings
from infra.settings import settings


def examine() -> list[dict[str, Any]]:
    """Return all findings as plain data."""
    return [asdict(finding) for finding in findings(settings())]


def print_findings(examined: list[dict[str, Any]]) -> None:
    """Print the findings as a table."""
    table = Table(show_header=False, box=None)
    for finding in examined:
        table.add_row(
            "[green]fine[/]" if finding["fine"] else "[red]wrong[/]", finding["what"], escape(finding["detail"])
        )
    Console().print(table)
