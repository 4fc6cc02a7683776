"""Detection of a run that has become several times slower than it began."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from threading import Lock

_SLOW = 1 / 3
_NUM_REPORTS = 3
"""Number of measurements at the beginning of a stage, and of consecutive slow ones before a warning."""
_MIN_SECONDS = 5.0
"""Duration of a measurement: shorter work is added up."""


@dataclass
class _Pace:
    """Work of a stage since its last measurement, and its speeds so far in tokens per second."""

    seconds: float = 0.0
    num_tokens: int = 0
    since: float | None = None
    """Time at which the running work began or was last counted."""
    first: list[float] = field(default_factory=list)
    num_slow: int = 0

    def count_until(self, now: float) -> None:
        if self.since is not None:
            self.seconds, self.since = self.seconds + now - self.since, now

    def measured(self) -> float:
        """Return the speed since the last measurement, and begin another one."""
        speed = self.num_tokens / self.seconds
        self.seconds, self.num_tokens = 0.0, 0
        return speed


class Slowdown:
    """Compares the tokens per second of each stage with those at its beginning; warns once.

    A measurement covers all work between two counts of tokens, such as a whole rollout: its last episodes are always
    slow, as few are left to compute side by side.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Create it without measurements.

        Args:
            clock: Returns the seconds since an arbitrary moment.
        """
        self._now = clock
        self._paces: dict[str, _Pace] = defaultdict(_Pace)
        self._has_warned = False
        self._one_at_a_time = Lock()

    @contextmanager
    def watching(self, stage: str) -> Iterator[None]:
        """Count the seconds of a stage."""
        pace = self._paces[stage]
        pace.since = self._now()
        try:
            yield
        finally:
            with self._one_at_a_time:
                pace.count_until(self._now())
                pace.since = None

    def computed(self, stage: str, num_tokens: int) -> str:
        """Count tokens of a stage; return a comparison of speeds the first time that it is slow, else nothing."""
        with self._one_at_a_time:
            pace = self._paces[stage]
            pace.count_until(self._now())
            pace.num_tokens += num_tokens
            return self._compared(pace) if pace.seconds >= _MIN_SECONDS else ""

    def _compared(self, pace: _Pace) -> str:
        speed = pace.measured()
        if len(pace.first) < _NUM_REPORTS:
            pace.first.append(speed)
            return ""
        usual = median(pace.first)
        pace.num_slow = pace.num_slow + 1 if speed < _SLOW * usual else 0
        if pace.num_slow < _NUM_REPORTS or self._has_warned:
            return ""
        self._has_warned = True
        return f"{speed / 1000:.1f}k tokens/s, {usual / 1000:.1f}k at first"
