"""Steps of a run: the tasks that it ran or took over from an earlier run, and the inputs that decided this."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from schemas.runs import KeyParts

_SHOWN_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    """Call of a versioned task."""

    task: str
    taken_over: bool
    made_by: str
    """Id of the run that produced the result."""
    inputs: dict[str, Any]
    """Digests and plain values, by argument."""
    made: list[str]
    """Digests of the results."""


@dataclass
class Steps:
    """Steps of a run so far; common parts are stored once."""

    started_utc: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    steps: list[Step] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Module, code, packages and settings by task."""
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Changed fields of recipe sections, by digest."""
    on_change: Callable[[], None] = lambda: None
    """Function called after new steps, at most every 10 seconds."""
    _last_shown_s: float = 0.0

    def go_on_from(self, earlier: dict[str, Any]) -> None:
        """Prepend the steps of a resumed run's earlier processes."""
        self.steps[:0] = [Step(**one) for one in earlier["steps"]]
        self.tasks |= earlier["step_tasks"]
        self.sections |= earlier["step_sections"]

    def note(
        self, parts: KeyParts, run_id: str, made_by: str, made: list[str], sections: dict[str, dict[str, Any]]
    ) -> None:
        """Add a step that this run executed or took over from another run."""
        self.steps.append(Step(parts.task, made_by != run_id, made_by, parts.inputs, made))
        of_all = {"module": parts.module, "code": parts.code, "packages": parts.packages, "settings": parts.settings}
        self.tasks[parts.task] = of_all
        self.sections |= sections
        if time.monotonic() - self._last_shown_s > _SHOWN_EVERY_S:
            self._last_shown_s = time.monotonic()
            self.on_change()

    def plain(self) -> dict[str, Any]:
        """Return the steps as plain data for the run's record."""
        return {
            "steps": [asdict(step) for step in self.steps],
            "step_tasks": self.tasks,
            "step_sections": self.sections,
        }

    def taken_over(self) -> str:
        """Return a summary such as `7 of 19 steps taken over from run X`; empty if there is none."""
        runs = Counter(step.made_by for step in self.steps if step.taken_over)
        if not runs:
            return ""
        names = ", ".join(f"run {run}" for run, _ in runs.most_common())
        return f"{runs.total()} of {len(self.steps)} steps taken over from {names}"
