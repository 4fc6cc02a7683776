"""What a cycle has cost, over the processes that worked on it."""

import time

import pytest

from infra.timesheet import Timesheet


def test_a_killed_process_leaves_what_it_had_counted(tmp_path):
    file = tmp_path / "journal" / "time.json"
    first = Timesheet()
    first.keep_in(file)
    with first.stage("dream"):
        time.sleep(0.05)
    first.used("dream", 100)
    first.asked("teacher", {"num_requests": 2, "num_cached": 0})
    first.failed("dream", {"context is full": 1})
    second = Timesheet()
    second.keep_in(file)
    with second.stage("dream"):
        time.sleep(0.1)
    second.used("train", 7)
    assert second.stage_seconds == {"dream": pytest.approx(0.15, abs=0.04)}
    second.failed("dream", {"context is full": 1, "environment raised an error": 3})
    second.asked("teacher", {"num_requests": 1, "num_cached": 2})
    assert second.stage_tokens == {"dream": 100, "train": 7}
    assert second.stage_failures == {"dream": {"context is full": 2, "environment raised an error": 3}}
    assert second.endpoint_costs == {"teacher": {"num_requests": 3, "num_cached": 2}}
    assert second.seconds == pytest.approx(0.15, abs=0.04)


def test_stages_that_overlap_are_one_time_of_work_and_storage_is_none():
    sheet = Timesheet()
    with sheet.stage("dream"):
        with sheet.stage("train"), sheet.stage("storage"):
            time.sleep(0.05)
        time.sleep(0.05)
    with sheet.stage("storage"):
        time.sleep(0.05)
    assert sheet.working_seconds == pytest.approx(0.1, abs=0.03)
    assert sheet.stage_seconds["storage"] == pytest.approx(0.1, abs=0.03)


def test_another_cycle_begins_its_own_sheet(tmp_path):
    sheet = Timesheet()
    sheet.keep_in(tmp_path / "a.json")
    sheet.used("dream", 2)
    sheet.keep_in(tmp_path / "b.json")
    assert sheet.stage_tokens == {}
