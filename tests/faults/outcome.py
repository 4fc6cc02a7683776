"""What came of a fault that was repeated."""

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """One row of the table."""

    fault: str
    promise: str
    num_tries: int = 0
    broken: list[str] = field(default_factory=list)
    """Every time the promise did not hold, and how."""

    def tried(self, *problems: str) -> None:
        """Count a try, with what went wrong in it, if anything did."""
        self.num_tries += 1
        self.broken += problems
