"""What a cycle has cost, over the processes that worked on it."""

import time

import pytest

from infra.timesheet import Timesheet


def test_a_killed_process_leaves_what_it_had_counted(tmp_path):
    file = tmp_path / "journal" / "time.json"
    first = Timesheet()
    first.keep_in(file)
    time.sleep(0.05)
    first.worked("dream", 2.0)
    first.used("dream", 100)
    second = Timesheet()
    second.keep_in(file)
    second.worked("dream", 1.0)
    second.used("train", 7)
    assert second.stage_seconds == {"dream": 3.0}
    assert second.stage_tokens == {"dream": 100, "train": 7}
    assert second.seconds == pytest.approx(0.05, abs=0.04)


def test_another_cycle_begins_its_own_sheet(tmp_path):
    sheet = Timesheet()
    sheet.keep_in(tmp_path / "a.json")
    sheet.worked("dream", 2.0)
    sheet.keep_in(tmp_path / "b.json")
    assert sheet.stage_seconds == {}
