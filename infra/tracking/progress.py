"""Progress display of a run: a live line per stage on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from infra.running.interrupts import stop_if_requested
from infra.tracking.costs import CostTracker

_PLAIN_EVERY_S = 10.0

Report = Callable[[int, int, str], None]
"""Function to call with done, total and a short text such as `success 61% dream, 31k tokens/s`."""


class Display:
    """Display of the running stages, one line each."""

    def __init__(self, console: Console | None = None) -> None:
        """Create a display on standard error, so that standard output stays clean for scripts."""
        self.console = console or Console(stderr=True, highlight=False)
        self.time = CostTracker()
        self.log: Callable[[str], None] = lambda line: None
        """Function that receives each line for the log: all messages, and a line on each stage and round."""
        self._bars: Progress | None = None
        self._changing = Lock()

    @contextmanager
    def stage(self, name: str) -> Iterator[Report]:
        """Time a stage and show its progress; each report also checks for an interrupt."""
        with self.time.stage(name), self._live(name) if self.console.is_terminal else self._plain(name) as show:

            def report(done: int, total: int, facts: str) -> None:
                stop_if_requested()
                show(done, total, facts)

            stop_if_requested()
            yield report

    def say(self, text: str) -> None:
        """Print one line, and log it."""
        self.console.print(text)
        self.log(text)

    def used(self, name: str, num_tokens: int) -> None:
        """Count tokens that a stage computed."""
        self.time.used(name, num_tokens)

    @contextmanager
    def _live(self, name: str) -> Iterator[Report]:
        """Show a bar in the live display that all threads share: a terminal can have only one."""
        with self._changing:
            bars = self._bars = self._bars or _started_bars(self.console)
            bar = bars.add_task(name, total=None, facts="")
        try:
            yield lambda done, total, facts: bars.update(bar, completed=done, total=total, facts=facts)
        finally:
            with self._changing:
                bars.remove_task(bar)
                if not bars.tasks:
                    bars.stop()
                    self._bars = None

    @contextmanager
    def _plain(self, name: str) -> Iterator[Report]:
        """Print plain lines. The time left is based on work since the first report: earlier work took no time here."""
        last = time.monotonic()
        first: tuple[float, int] | None = None

        def report(done: int, total: int, facts: str) -> None:
            nonlocal last, first
            now = time.monotonic()
            first = first or (now, done)
            if now - last > _PLAIN_EVERY_S:
                last = now
                began, before = first
                left = f", {(now - began) * (total - done) / (done - before):.0f} s left" if done > before else ""
                self.console.print(f"{name}: {done}/{total} {facts}{left}")

        yield report


def _started_bars(console: Console) -> Progress:
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<28}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[facts]}"),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    bars.start()
    return bars
