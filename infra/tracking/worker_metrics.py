"""Metrics of a worker without access to MLflow: they return to the caller, who logs them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infra.tracking.tracker import Tracker


@dataclass
class Notes:
    """Metrics by stage; takes the place of a Tracker in a worker."""

    entries: list[tuple[str, dict[str, float], int]] = field(default_factory=list)

    def stage(self, name: str) -> "_Stage":
        """Return a stage that adds to these notes."""
        return _Stage(self, name)

    def log_into(self, tracker: "Tracker") -> None:
        """Log all entries to a tracker."""
        for name, metrics, step in self.entries:
            tracker.stage(name).log_metrics(metrics, step)


@dataclass(frozen=True)
class _Stage:
    notes: Notes
    name: str

    def log_metrics(self, metrics: Mapping[str, float], step: int = 0) -> None:
        finite = {key: value for key, value in metrics.items() if math.isfinite(value)}
        self.notes.entries.append((self.name, finite, step))
