"""The two forms of a progress display: lines above live bars on a terminal, and lines with a time stamp elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Lock

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

Report = Callable[[int, int, str, str], None]
"""Function to call with done, total, the unit of both, and further facts, such as `dream 61%, 3.1k tokens/s`."""

_WIDTH = 80
_TITLE_WIDTH = 24
_DURATION_WIDTH = 9
_BAR_WIDTH = 8
_DRAWN_EVERY_S = 0.5
_PRINTED_EVERY_S = 10.0
_MINUTE, _HOUR = 60, 3600


def duration(seconds: float) -> str:
    """Return a duration as text, such as `0.4 s`, `38 s`, `7 min` or `2.5 h`."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 2 * _MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} h"


def sentence(title: str, result: str, seconds: float | None = None) -> str:
    """Return what is known of finished work as one line of plain text."""
    facts = [result, "" if seconds is None else duration(seconds)]
    return f"{title}: {_joined(*facts)}"


def _joined(*facts: str) -> str:
    return ", ".join(filter(None, facts))


class LiveView:
    """Lines on finished work, and below them a bar for each running stage. A terminal can have only one such display."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        """Create a view without bars.

        Args:
            console: Terminal.
            clock: Returns the seconds since an arbitrary moment.
        """
        self._console, self._now = console, clock
        self._bars: Progress | None = None
        self._num_open = 0
        self._changing = Lock()

    def say(self, text: str) -> None:
        """Print a message above the bars."""
        self._console.print(text, markup=False, emoji=False)

    def finished(self, title: str, result: str, seconds: float) -> None:
        """Print a line on finished work above the bars."""
        width = min(self._console.width, _WIDTH)
        line = Text(f"{title:<{_TITLE_WIDTH}}  {result}")
        line.truncate(width - _DURATION_WIDTH, overflow="ellipsis", pad=True)
        self._console.print(line.append(f"{duration(seconds):>{_DURATION_WIDTH}}", style="dim"), no_wrap=True)

    @contextmanager
    def kept_open(self) -> Iterator[Progress]:
        """Keep the live part on the screen, so that it does not flicker between stages."""
        with self._changing:
            self._num_open += 1
            bars = self._bars = self._bars or _started_bars(self._console, self._now)
        try:
            yield bars
        finally:
            with self._changing:
                self._num_open -= 1
                if not self._num_open:
                    bars.stop()
                    self._bars = None

    @contextmanager
    def stage(self, name: str) -> Iterator[Report]:
        """Show a bar that is changed only as often as it is drawn."""
        drawn: float | None = None
        with self.kept_open() as bars:
            bar = bars.add_task(name, total=None, count="", facts="")

            def report(done: int, total: int, unit: str, facts: str) -> None:
                nonlocal drawn
                now = self._now()
                if drawn is None or now - drawn >= _DRAWN_EVERY_S:
                    drawn = now
                    bars.update(bar, completed=done, total=total, count=f"{done}/{total}", facts=_joined(unit, facts))

            try:
                yield report
            finally:
                bars.remove_task(bar)


class _Facts(ProgressColumn):
    """Text that is cut off where a line is too narrow: a column of text would break into several lines."""

    def render(self, task: Task) -> Text:
        return Text(task.fields["facts"], no_wrap=True, overflow="ellipsis")


def _started_bars(console: Console, clock: Callable[[], float]) -> Progress:
    bars = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
        BarColumn(bar_width=_BAR_WIDTH, table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[count]}", table_column=Column(no_wrap=True)),
        _Facts(table_column=Column(ratio=1)),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
        console=console,
        refresh_per_second=1 / _DRAWN_EVERY_S,
        get_time=clock,
        transient=True,
        expand=True,
    )
    bars.start()
    return bars


class PlainView:
    """One line per event, with the time of day, for a file or a pipe."""

    def __init__(self, console: Console, clock: Callable[[], float], time_of_day: Callable[[], datetime]) -> None:
        """Create a view.

        Args:
            console: Console that writes to the file or pipe.
            clock: Returns the seconds since an arbitrary moment.
            time_of_day: Returns the time to print.
        """
        self._console, self._now, self._time_of_day = console, clock, time_of_day

    def say(self, text: str) -> None:
        """Print a message as one line, however long it is."""
        line = f"{self._time_of_day():%H:%M:%S} {text}"
        self._console.print(line, markup=False, emoji=False, soft_wrap=True)

    def finished(self, title: str, result: str, seconds: float) -> None:
        """Print a line on finished work."""
        ending = f"{', ' if result else ' '}{duration(seconds)}"
        self._print(f"{title}: {result}".rstrip(), ending)

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Do nothing: there is no live part."""
        yield

    @contextmanager
    def stage(self, name: str) -> Iterator[Report]:
        """Print a line every 10 s.

        The time left is based on work since the first report: earlier work took no time here.
        """
        last = self._now()
        first: tuple[float, int] | None = None

        def report(done: int, total: int, unit: str, facts: str) -> None:
            nonlocal last, first
            now = self._now()
            first = first or (now, done)
            if now - last >= _PRINTED_EVERY_S:
                last = now
                began, before = first
                left = (now - began) * (total - done) / (done - before) if done > before else None
                self._progress(name, f"{done}/{total}", left, facts)

        yield report

    def _progress(self, name: str, count: str, seconds_left: float | None, facts: str) -> None:
        left = "" if seconds_left is None else f"{duration(seconds_left)} left"
        self._print(f"{name}: {_joined(count, left, facts)}")

    def _print(self, text: str, ending: str = "") -> None:
        """Print a line; if it is too long, the text is cut off before its ending."""
        line = Text(f"{self._time_of_day():%H:%M:%S} {text}")
        line.truncate(_WIDTH - len(ending), overflow="ellipsis")
        self._console.print(line.append(ending), soft_wrap=True)
