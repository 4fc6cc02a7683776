"""What a person sees while a cycle runs: a live line on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from infra.interrupts import stop_if_interrupted
from infra.timesheet import Timesheet

_PLAIN_EVERY_S = 10.0

Report = Callable[[int, int, str], None]
"""Called with done, total and a short text such as `success 61% dream, 31k tokens/s`."""


class Display:
    """Shows one stage at a time."""

    def __init__(self, console: Console | None = None) -> None:
        """A display on standard error, so that standard output stays clean for scripts."""
        self.console = console or Console(stderr=True, highlight=False)
        self.time = Timesheet()

    @contextmanager
    def stage(self, name: str) -> Iterator[Report]:
        """Time a stage and show its progress; every report is a moment to notice an interrupt."""
        started = time.monotonic()
        try:
            with self._live(name) if self.console.is_terminal else self._plain(name) as show:

                def report(done: int, total: int, facts: str) -> None:
                    stop_if_interrupted()
                    show(done, total, facts)

                stop_if_interrupted()
                yield report
        finally:
            self.time.worked(name, time.monotonic() - started)

    def say(self, text: str) -> None:
        """One line for a person."""
        self.console.print(text)

    def used(self, name: str, num_tokens: int) -> None:
        """Count tokens that a stage computed."""
        self.time.used(name, num_tokens)

    @contextmanager
    def _live(self, name: str) -> Iterator[Report]:
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description:<28}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as progress:
            bar = progress.add_task(name, total=None, facts="")

            def report(done: int, total: int, facts: str) -> None:
                progress.update(bar, completed=done, total=total, facts=facts)

            yield report

    @contextmanager
    def _plain(self, name: str) -> Iterator[Report]:
        last = time.monotonic()
        started = last

        def report(done: int, total: int, facts: str) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last > _PLAIN_EVERY_S:
                last = now
                left = (now - started) * (total - done) / max(1, done)
                self.console.print(f"{name}: {done}/{total} {facts}, {left:.0f} s left")

        yield report
