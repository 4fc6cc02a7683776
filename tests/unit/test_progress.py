from io import StringIO
from types import SimpleNamespace

from rich.console import Console

from infra.tracking.progress import Display


def test_the_time_left_leaves_out_what_was_done_before(monkeypatch):
    seconds = iter([0, 5, 25, 45])
    monkeypatch.setattr("infra.tracking.progress.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    written = StringIO()
    with Display(Console(file=written)).stage("experience model") as report:
        report(100, 200, "loss 1")  # five seconds after it began, resumed from a run that was cut off
        report(110, 200, "loss 2")
        report(150, 200, "loss 3")
    # 10 in 20 s: 90 more take 180; 50 in 40 s: 50 more take 40
    assert written.getvalue().splitlines() == [
        "experience model: 110/200 loss 2, 180 s left",
        "experience model: 150/200 loss 3, 40 s left",
    ]
