"""Progress display: on a terminal, in a pipe, in rounds, and where the machine becomes slow."""

import re
from datetime import datetime, timedelta
from io import StringIO

import pytest
from rich.console import Console
from rich.text import Text

from infra.progress.progress import Display
from infra.progress.progress_views import duration

EVENING = datetime(2026, 11, 26, 22, 0, 0)


class Watched:
    """Display with a clock that stands still unless the test moves it, and everything that it has written and logged."""

    def __init__(self, *, terminal: bool) -> None:
        self.seconds = 0.0
        self._written = StringIO()
        console = Console(file=self._written, force_terminal=terminal, width=80, highlight=False)
        self.display = Display(console, lambda: self.seconds, lambda: EVENING + timedelta(seconds=self.seconds))
        self.logged: list[str] = []
        self.display.log = self.logged.append

    @property
    def text(self) -> str:
        return self._written.getvalue()

    @property
    def lines(self) -> list[str]:
        """All lines of a pipe, or all that a terminal has shown for some time, one below the other."""
        plain = Text.from_ansi(re.sub(r"(\r|\x1b\[(\?25[lh]|\d*[AK]))+", "\n", self.text)).plain
        return [line.rstrip() for line in plain.splitlines() if line.strip()]

    def stage(
        self, name: str, seconds: float, done: int = 0, unit: str = "", facts: str = "", num_tokens: int = 0
    ) -> None:
        with self.display.stage(name) as report:
            self.seconds += seconds
            if unit:
                report(done, done, unit, facts)
        if num_tokens:
            self.display.used(name, num_tokens)

    def draw(self) -> None:
        """Draw all bars: they are drawn whenever a stage begins."""
        self.stage("another", 0)


@pytest.fixture
def pipe() -> Watched:
    return Watched(terminal=False)


@pytest.fixture
def terminal() -> Watched:
    return Watched(terminal=True)


def test_a_pipe_gets_a_line_per_event_with_the_time_of_day_and_no_control_characters(pipe):
    pipe.display.say("run night-20261126-1: 5 stages, 22 rounds, about 7 min, as last time [2/3]")
    pipe.stage("logs", 9.5, 800, "episodes", "56% of them successes")
    pipe.stage("backbone", 0.5)
    pipe.display.say("a message of many words " * 5)
    assert pipe.text.splitlines() == [
        "22:00:00 run night-20261126-1: 5 stages, 22 rounds, about 7 min, as last time [2/3]",
        "22:00:09 logs: 800 episodes, 56% of them successes, 9.5 s",
        "22:00:10 backbone: 0.5 s",
        "22:00:10 " + "a message of many words " * 5,
    ]


def test_a_pipe_gets_a_line_every_ten_seconds_that_fits_on_a_screen(pipe):
    pipe.display.labels = {"evaluate start dream": "evaluate start policy, in the dream"}
    with pipe.display.stage("evaluate start dream") as report:
        for done in range(1, 1001):
            pipe.seconds += 1 / 32
            report(done, 1000, "episodes", f"dream {done / 10:.0f}%, 3.1k tokens/s")
    # 32 a second: after 320, 640 and 960, 680, 360 and 40 are left
    assert pipe.text.splitlines() == [
        "22:00:10 evaluate start policy, in the dream: 320/1000, 21 s left, dream 32%, 3…",
        "22:00:20 evaluate start policy, in the dream: 640/1000, 11 s left, dream 64%, 3…",
        "22:00:30 evaluate start policy, in the dream: 960/1000, 1.2 s left, dream 96%, …",
        "22:00:31 evaluate start policy, in the dream: 1,000 episodes, dream 100%,…, 31 s",
    ]
    assert max(map(len, pipe.lines)) == 80


def test_the_time_left_leaves_out_what_was_done_before(pipe):
    with pipe.display.stage("experience model") as report:
        for wait, done, loss in ((5, 100, 1), (20, 110, 2), (20, 150, 3)):  # resumed from an earlier process at 100
            pipe.seconds += wait
            report(done, 200, "updates", f"loss {loss}")
    # 10 in 20 s: 90 more take 180 s; 50 in 40 s: 50 more take 40 s
    assert pipe.lines[:2] == [
        "22:00:25 experience model: 110/200, 3 min left, loss 2",
        "22:00:45 experience model: 150/200, 40 s left, loss 3",
    ]


def test_a_terminal_keeps_one_line_per_finished_stage_in_columns(terminal):
    terminal.stage("logs", 13, 800, "episodes", "56% of them successes")
    terminal.stage("experience model", 250, 1234, "updates", "loss 0.123, 5.1k tokens/s")
    terminal.stage(
        "a stage with a name that is longer than the column", 0.4, 64, "episodes", "dream 77%, 3.1k tokens/s"
    )
    remaining = [line for line in terminal.lines if line.endswith((" s", " min"))]
    assert remaining == [
        "logs                      800 episodes, 56% of them successes               13 s",
        "experience model          1,234 updates, loss 0.123, 5.1k tokens/s         4 min",
        "a stage with a name that is longer than the column  64 episodes, dream…    0.4 s",
    ]


def test_a_terminal_shows_a_bar_with_the_time_left_while_a_stage_runs(terminal):
    terminal.display.labels = {"evaluate start dream": "evaluate start policy, in the dream"}
    with terminal.display.round(17, 20), terminal.display.stage("dream") as report:
        for done in range(1, 6):
            terminal.seconds += 1
            report(done, 8, "episodes", "dream 61%, 15.1k tokens/s")
        terminal.draw()
    with terminal.display.stage("evaluate start dream") as report:
        report(1, 2, "episodes", "dream 61%, 15.1k tokens/s")
        terminal.draw()
    bars = "\n".join(terminal.lines)
    assert re.search(r"round 17 of 20, dream +\S+ +5/8 episodes, dream 61%, 15.1k tokens/s +00:03", bars)
    assert re.search(r"evaluate start policy, in the dream +\S+ +1/2 episodes, dream 61%", bars)
    assert max(map(len, terminal.lines)) <= 80


def test_a_report_is_drawn_at_most_twice_a_second(terminal):
    with terminal.display.stage("dream") as report:
        bar = terminal.display._view._bars.tasks[0]
        drawn = set()
        for done in range(1, 1001):
            terminal.seconds += 0.001
            report(done, 1000, "episodes", "")
            drawn.add(bar.completed)
    assert drawn == {1, 501}


IN_A_PIPE = [
    "22:00:38 round 7 of 20: dream 82%, real (valid) 79%, 38 s",
    "22:00:41 evaluate start policy: real 75.0%, dream 77.3%, 3.0 s",
]
ON_A_TERMINAL = [
    "round 7 of 20             dream 82%, real (valid) 79%                       38 s",
    "evaluate start policy     real 75.0%, dream 77.3%                          3.0 s",
]


@pytest.mark.parametrize(("terminal", "expected"), [(False, IN_A_PIPE), (True, ON_A_TERMINAL)])
def test_a_round_is_one_line_and_so_are_all_stages_of_an_evaluation(terminal, expected):
    watched = Watched(terminal=terminal)
    with watched.display.round(7, 20) as conclude:
        watched.stage("dream", 30, 128, "episodes", "dream 82%")
        conclude("dream 82%, real (valid) 50%")
        with watched.display.one_line("calibrate") as within:
            watched.stage("calibrate", 8, 64, "episodes", "real 79%")
            within("real 79%, dream 82%")
        conclude("dream 82%, real (valid) 79%")
    with watched.display.one_line("evaluate start policy") as conclude:
        watched.stage("evaluate start", 1)
        watched.stage("evaluate start dream", 2)
        conclude("real 75.0%, dream 77.3%")
    assert [line for line in watched.lines if line.endswith(" s")] == expected
    assert watched.logged == [
        "round 7 of 20: dream 82%, real (valid) 79%, 38 s",
        "evaluate start policy: real 75.0%, dream 77.3%, 3.0 s",
    ]


def test_a_running_stage_says_in_which_round_it_is(pipe):
    with pipe.display.round(7, 20), pipe.display.stage("dream") as report:
        pipe.seconds += 12
        report(57, 128, "episodes", "dream 82%")
    assert pipe.lines[0] == "22:00:12 round 7 of 20, dream: 57/128, dream 82%"


def test_a_round_in_which_nothing_ran_is_only_logged(pipe):
    with pipe.display.round(1, 20) as conclude:
        with pipe.display.timed("engines"):
            pipe.seconds += 1
        conclude("dream 60%")
    assert pipe.text == ""
    assert pipe.logged == ["round 1 of 20: dream 60%"]


def test_plumbing_costs_time_and_gets_no_line(pipe):
    with pipe.display.timed("storage"):
        pipe.seconds += 30
    assert (pipe.text, pipe.logged) == ("", [])
    assert pipe.display.time.stage_seconds == {"storage": 30}


def test_what_failed_leaves_no_line(pipe):
    with pytest.raises(ZeroDivisionError), pipe.display.round(1, 2), pipe.display.stage("dream"):
        raise ZeroDivisionError
    assert pipe.text == ""
    pipe.stage("dream", 1)
    assert pipe.lines == ["22:00:01 dream: 1.0 s"], "it is no part of the failed round"


def test_a_run_that_becomes_slow_is_warned_of_once_with_the_remedy(pipe):
    pipe.display.labels = {"calibrate dream": "calibrate, in the dream"}
    speeds = [16_000, 15_000, 17_000, 6_000, 4_000, 5_000, 16_000, 5_000, 5_000, 4_000, 4_000, 4_000]
    warned = []
    for speed in speeds:
        pipe.stage("calibrate dream", 10, num_tokens=10 * speed)
        warned.append("slow" in pipe.text)
    # a third of 16,000 is 5,333: the third slow one in a row is the tenth of all
    assert warned.index(True) == 9
    slow = [line for line in pipe.text.splitlines() if "slow" in line]
    assert len(slow) == 1
    assert slow[0].startswith(
        "22:01:40 slow: calibrate, in the dream at 4.0k tokens/s, 16.0k at first. Other processes"
    )
    assert "DREAMGYM_NUM_THREADS" in slow[0]


def test_short_work_is_added_up_and_one_long_stage_is_measured_as_it_goes(pipe):
    with pipe.display.stage("experience model"):
        for speed in [1_000] * 60 + [100] * 60:
            pipe.seconds += 0.5
            pipe.display.used("experience model", speed // 2)
    assert pipe.text.count("slow: experience model at 0.1k tokens/s, 1.0k at first.") == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (9.96, "10 s"), (119, "119 s"), (420, "7 min"), (9_000, "2.5 h")],
)
def test_a_duration_is_as_exact_as_it_is_long(seconds, text):
    assert duration(seconds) == text
