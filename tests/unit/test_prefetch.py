"""Prefetched work, and a terminal that shows stages in parallel."""

import io
import threading

import pytest
from rich.console import Console

from infra.progress.progress import Display
from infra.running.prefetch import Prefetcher


@pytest.mark.parametrize("beside", [False, True])
def test_what_was_made_comes_in_the_order_in_which_it_was_begun(beside):
    with Prefetcher[int](concurrent=beside) as ahead:
        for number in range(5):
            ahead.begin(lambda number=number: number * number)
        assert ahead.num_begun == 5
        assert [ahead.take() for _ in range(5)] == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("beside", [False, True])
def test_an_error_is_told_when_the_piece_is_taken(beside):
    with Prefetcher[float](concurrent=beside) as ahead:
        ahead.begin(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ahead.take()


def test_work_beside_goes_on_while_its_taker_works():
    done = threading.Event()
    with Prefetcher[None](concurrent=True) as ahead:
        ahead.begin(done.set)
        assert done.wait(timeout=10)


def test_what_was_not_begun_when_its_taker_fails_is_dropped_and_what_was_under_way_is_finished():
    began, may_end, finished = threading.Event(), threading.Event(), []

    def under_way() -> None:
        began.set()
        may_end.wait(timeout=10)
        finished.append("under way")

    def fails() -> None:
        with Prefetcher[None](concurrent=True) as ahead:
            ahead.begin(under_way)
            ahead.begin(lambda: finished.append("waiting"))
            assert began.wait(timeout=10)
            threading.Timer(0.1, may_end.set).start()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert finished == ["under way"]


def test_a_terminal_shows_stages_of_several_threads_side_by_side():
    written = io.StringIO()
    display = Display(Console(file=written, force_terminal=True, width=120))

    def another() -> None:
        with display.stage("dream") as report:
            report(1, 2, "episodes", "dream 50%")
            with display.stage("replays"):  # a stage that begins is drawn at once, and all others with it
                pass

    with display.stage("train dream") as report:
        report(3, 4, "updates", "loss 0.5")
        beside = threading.Thread(target=another)
        beside.start()
        beside.join()
    after_the_cursor_is_back = written.getvalue().rpartition("\x1b[?25h")[2]
    assert "train dream" in after_the_cursor_is_back
    assert "\x1b[?25l" not in after_the_cursor_is_back
    assert "dream 50%" in written.getvalue()
    assert "loss 0.5" in written.getvalue()
