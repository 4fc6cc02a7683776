"""Cost of a run, over all processes that worked on it."""

from infra.tracking.costs import CostTracker


class Clock:
    """Clock that stands still unless the test moves it."""

    now = 1000.0

    def __call__(self):
        return self.now

    def wait(self, seconds):
        self.now += seconds


def test_a_killed_process_leaves_what_it_had_counted(tmp_path):
    file, clock = tmp_path / "journal" / "time.json", Clock()
    first = CostTracker(clock)
    first.keep_in(file)
    with first.stage("dream"):
        clock.wait(2)
    first.used("dream", 100)
    first.asked("teacher", {"num_requests": 2, "num_cached": 0})
    first.failed("dream", {"context is full": 1})
    second = CostTracker(clock)
    second.keep_in(file)
    with second.stage("dream"):
        clock.wait(4)
    clock.wait(1)
    second.used("train", 7)
    assert second.stage_seconds == {"dream": 6}
    second.failed("dream", {"context is full": 1, "environment raised an error": 3})
    second.failed("train", {})
    second.asked("teacher", {"num_requests": 1, "num_cached": 2})
    assert second.stage_tokens == {"dream": 100, "train": 7}
    assert second.stage_failures == {"dream": {"context is full": 2, "environment raised an error": 3}}
    assert second.endpoint_costs == {"teacher": {"num_requests": 3, "num_cached": 2}}
    assert second.seconds == 7


def test_whatever_was_counted_last_is_kept(tmp_path):
    clock = Clock()
    sheet = CostTracker(clock)
    sheet.keep_in(tmp_path / "time.json")

    def kept() -> CostTracker:
        again = CostTracker(clock)
        again.keep_in(tmp_path / "time.json")
        return again

    with sheet.stage("dream"):
        clock.wait(2)
    assert (kept().stage_seconds, kept().working_seconds) == ({"dream": 2}, 2)
    sheet.used("dream", 100)
    assert kept().stage_tokens == {"dream": 100}
    sheet.failed("dream", {"context is full": 1})
    assert kept().stage_failures == {"dream": {"context is full": 1}}
    sheet.asked("teacher", {"num_requests": 2})
    assert kept().endpoint_costs == {"teacher": {"num_requests": 2}}


def test_stages_that_overlap_are_one_time_of_work_and_storage_is_none():
    clock = Clock()
    sheet = CostTracker(clock)
    with sheet.stage("dream"):
        with sheet.stage("train"), sheet.stage("storage"):
            clock.wait(5)
        clock.wait(3)
    with sheet.stage("storage"):
        clock.wait(7)
    assert sheet.working_seconds == 8
    assert sheet.stage_seconds == {"train": 5, "dream": 8, "storage": 12}


def test_another_cycle_begins_its_own_sheet(tmp_path):
    sheet = CostTracker()
    sheet.keep_in(tmp_path / "a.json")
    sheet.used("dream", 2)
    sheet.keep_in(tmp_path / "b.json")
    assert sheet.stage_tokens == {}
