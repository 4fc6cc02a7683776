"""Costs of a run so far: seconds, tokens and failed episodes by stage, over all processes that worked on it."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock

from infra.files.durable_files import write_durably

_STORAGE = "storage"
"""Stage that counts as overhead of the orchestration, not as work."""


class CostTracker:
    """Counters of a run, stored in a file so that a resumed run continues those of a killed process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Create empty counters, not stored in a file yet.

        Args:
            clock: Returns the seconds since an arbitrary moment.
        """
        self._now = clock
        self.stage_seconds: dict[str, float] = {}
        self.stage_tokens: dict[str, int] = {}
        self.stage_failures: dict[str, dict[str, int]] = {}
        """Episodes without an outcome, by stage and reason."""
        self.stage_limits: dict[str, dict[str, int]] = {}
        """Limits that the policy's prompts and answers met, and errors of their form, by stage and kind."""
        self.endpoint_costs: dict[str, dict[str, int]] = {}
        """Requests, cached answers and tokens, by model at the endpoint."""
        self.working_seconds = 0.0
        """Seconds in which at least one stage was running: stages of several threads overlap. Storage is excluded."""
        self._file: Path | None = None
        self._earlier_s = 0.0
        self._started = self._now()
        self._num_running, self._running_since = 0, 0.0
        self._one_at_a_time = RLock()

    @property
    def seconds(self) -> float:
        """Wall time of the run in seconds, over all its processes."""
        return self._earlier_s + self._now() - self._started

    def keep_in(self, file: Path) -> None:
        """Store the counters in a file, and continue those that it already contains."""
        file.parent.mkdir(parents=True, exist_ok=True)
        earlier = json.loads(file.read_text()) if file.exists() else {}
        self.stage_seconds, self.stage_tokens = earlier.get("stage_seconds", {}), earlier.get("stage_tokens", {})
        self.stage_failures, self.endpoint_costs = earlier.get("stage_failures", {}), earlier.get("endpoint_costs", {})
        self.stage_limits = earlier.get("stage_limits", {})
        self.working_seconds = earlier.get("working_seconds", 0.0)
        self._earlier_s, self._started = earlier.get("seconds", 0.0), self._now()
        self._file = file

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the seconds that a stage takes."""
        started = self._now()
        self._count(name, +1, started)
        try:
            yield
        finally:
            self._count(name, -1, self._now())
            self._worked(name, self._now() - started)

    def _count(self, name: str, change: int, now: float) -> None:
        if name == _STORAGE:
            return
        with self._one_at_a_time:
            if self._num_running:
                self.working_seconds += now - self._running_since
            self._num_running, self._running_since = self._num_running + change, now

    def _worked(self, name: str, seconds: float) -> None:
        with self._one_at_a_time:
            self.stage_seconds[name] = self.stage_seconds.get(name, 0.0) + seconds
            self._save()

    def used(self, stage: str, num_tokens: int) -> None:
        """Add tokens that a stage computed."""
        with self._one_at_a_time:
            self.stage_tokens[stage] = self.stage_tokens.get(stage, 0) + num_tokens
            self._save()

    def failed(self, stage: str, failures: Mapping[str, int]) -> None:
        """Add a stage's episodes without an outcome, by reason; a stage without failures gets no entry."""
        if failures:
            self._add(self.stage_failures, stage, failures)

    def met(self, stage: str, limits: Mapping[str, int]) -> None:
        """Add a stage's prompts and answers that met a limit, by kind; a stage without any gets no entry."""
        if limits:
            self._add(self.stage_limits, stage, limits)

    def asked(self, model: str, cost: Mapping[str, int]) -> None:
        """Add the requests, cached answers and tokens of a model at the endpoint."""
        self._add(self.endpoint_costs, model, cost)

    def _add(self, counts: dict[str, dict[str, int]], name: str, more: Mapping[str, int]) -> None:
        with self._one_at_a_time:
            earlier = counts.get(name, {})
            counts[name] = earlier | {of: earlier.get(of, 0) + number for of, number in more.items()}
            self._save()

    def _save(self) -> None:
        if self._file is not None:
            counts = ("stage_seconds", "stage_tokens", "stage_failures", "stage_limits", "endpoint_costs")
            names = ("seconds", "working_seconds", *counts)
            write_durably(self._file, json.dumps({name: getattr(self, name) for name in names}).encode())
