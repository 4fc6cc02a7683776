"""Inject every fault and print what held: `python -m tests.faults.run` (minutes), `--large` (`make faults`)."""

import sys
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from tests.faults import damage, endurance, episodes, kills, outages, promotions, starts, storage
from tests.faults.outcome import Outcome

FAULTS: dict[str, tuple[Callable[[int], Outcome], int, int]] = {
    "promotions": (promotions.check, 3, 50),
    "damage": (damage.check, 40, 400),
    "storage errors": (storage.check_errors, 8, 100),
    "lost answers": (storage.check_lost_answers, 15, 100),
    "episodes": (episodes.check, 20, 1000),
    "kills": (kills.check, 3, 200),
    "outages": (outages.check, 4, 40),
    "starts": (starts.check, 2, 100),
    "cycles in a row": (endurance.check, 2, 20),
}
"""Check that injects each fault, with its number of tries in the tests and in full."""


def check_few(name: str) -> None:
    """Inject a fault as often as the tests do; raise AssertionError unless the promise always held."""
    check, few, _ = FAULTS[name]
    outcome = check(few)
    assert not outcome.broken, "\n".join(outcome.broken)
    assert outcome.num_tries >= few


def main(large: bool) -> int:
    """Print the table; return 1 if a promise did not hold."""
    table = Table(title="Faults injected for real, and what must hold")
    for heading in ("fault", "must hold", "tries", "held"):
        table.add_column(heading, justify="left" if heading in ("fault", "must hold") else "right", overflow="fold")
    broken: list[str] = []
    for check, few, many in FAULTS.values():
        outcome = check(many if large else few)
        held = outcome.num_tries - len(outcome.broken)
        table.add_row(outcome.fault, outcome.promise, str(outcome.num_tries), str(held))
        broken += outcome.broken
    console = Console()
    console.print(table)
    for problem in broken:
        console.print(problem, soft_wrap=True)
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main("--large" in sys.argv))
