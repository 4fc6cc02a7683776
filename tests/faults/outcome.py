"""Results of a fault that was injected repeatedly."""

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """One row of the results table."""

    fault: str
    promise: str
    num_tries: int = 0
    broken: list[str] = field(default_factory=list)
    """Descriptions of every time the promise did not hold."""

    def tried(self, *problems: str) -> None:
        """Count a try, with the problems found in it, if any."""
        self.num_tries += 1
        self.broken += problems
