"""Progress display of a run: running stages, a line for each finished stage or round, and messages."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console

from infra.progress.progress_views import LiveView, PlainView, Report, sentence
from infra.progress.slowdown import Slowdown
from infra.running.interrupts import stop_if_requested
from infra.tracking.costs import CostTracker

_REMEDY = (
    "Other processes are using the cores: end them, or run the same command again with DREAMGYM_NUM_THREADS set to the "
    "number of free cores; the run resumes after its last finished step"
)

Conclude = Callable[[str], None]
"""Function to call with the result of a line, such as `real 75%, dream 77%`; the last call counts."""


@dataclass(eq=False)
class _Line:
    """Line to print on all stages that run until it is complete."""

    title: str
    is_round: bool
    result: str = ""
    has_run: bool = False

    def conclude(self, result: str) -> None:
        self.result = result


class Display:
    """Display of the stages of a run."""

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        time_of_day: Callable[[], datetime] = datetime.now,
    ) -> None:
        """Create a display.

        Args:
            console: Console to print to; standard error by default, so that standard output stays clean for scripts.
            clock: Returns the seconds since an arbitrary moment.
            time_of_day: Returns the time of lines that are not written to a terminal.
        """
        self.console = console or Console(stderr=True, highlight=False)
        self.time = CostTracker(clock)
        self.log: Callable[[str], None] = lambda line: None
        """Function that receives each line for the log: messages, finished stages and rounds."""
        self.labels: Mapping[str, str] = {}
        """Names of stages in plain words; a stage that is missing is shown under its own name."""
        self._now = clock
        self._slowdown = Slowdown(clock)
        self._lines: list[_Line] = []
        is_live = self.console.is_terminal and not self.console.is_dumb_terminal
        self._view = LiveView(self.console, clock) if is_live else PlainView(self.console, clock, time_of_day)

    @contextmanager
    def stage(self, name: str) -> Iterator[Report]:
        """Time a stage and show it while it runs; each report also checks for an interrupt.

        Its last report is its result in the line that remains, unless the stage is part of a larger line.
        """
        label, started = self.labels.get(name, name), self._now()
        is_part, result = bool(self._lines), (0, "", "")
        for line in self._lines:
            line.has_run = True
        with self.timed(name), self._slowdown.watching(name), self._view.stage(self._in_round(label)) as show:

            def report(done: int, total: int, unit: str, facts: str) -> None:
                nonlocal result
                stop_if_requested()
                result = done, unit, facts
                show(done, total, unit, facts)

            yield report
        if not is_part:
            self._finished(label, _counted(*result), self._now() - started)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time work that is no news to the user: it appears in the table of costs only."""
        with self.time.stage(name):
            stop_if_requested()
            yield

    def round(self, number: int, total: int, kind: str = "round") -> AbstractContextManager[Conclude]:
        """Show all stages until the end of a round as one line; see one_line."""
        return self.one_line(f"{kind} {number} of {total}", is_round=True)

    @contextmanager
    def one_line(self, title: str, *, is_round: bool = False) -> Iterator[Conclude]:
        """Show all stages within as one line with the result that the yielded function is called with.

        A line within a line is not printed. If nothing ran, since all results are those of an earlier run, the line is
        only logged.
        """
        started, is_part = self._now(), bool(self._lines)
        line = _Line(title, is_round)
        self._lines.append(line)
        try:
            with self._view.kept_open():
                yield line.conclude
        finally:
            self._lines.remove(line)
        if line.has_run and not is_part:
            self._finished(title, line.result, self._now() - started)
        elif not is_part:
            self.log(sentence(title, line.result))

    def say(self, text: str) -> None:
        """Print a message, and log it."""
        self._view.say(text)
        self.log(text)

    def used(self, name: str, num_tokens: int) -> None:
        """Count tokens that a stage computed; warn once if a stage has become several times slower."""
        self.time.used(name, num_tokens)
        if compared := self._slowdown.computed(name, num_tokens):
            self.say(f"slow: {self.labels.get(name, name)} at {compared}. {_REMEDY}")

    def _in_round(self, label: str) -> str:
        rounds = [line.title for line in self._lines if line.is_round]
        return f"{rounds[0]}, {label}" if rounds else label

    def _finished(self, title: str, result: str, seconds: float) -> None:
        self._view.finished(title, result, seconds)
        self.log(sentence(title, result, seconds))


def _counted(done: int, unit: str, facts: str) -> str:
    """Return the last report of a stage as text; empty if there was none."""
    return ", ".join(filter(None, (f"{done:,} {unit}" if unit else "", facts)))
