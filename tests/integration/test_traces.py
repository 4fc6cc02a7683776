"""Sampled rollouts in a real MLflow: an episode is a trace of what was seen, retrieved, done and answered."""

import pytest
from mlflow import MlflowClient

from infra.settings import Settings
from infra.tracking.tracker import Tracker
from schemas.records import AgentTask, Step, Trajectory, Turn

pytestmark = pytest.mark.integration


def episode(task_id: str, origin="dream") -> Trajectory:
    task = AgentTask(task_id, "recipe: carrot fried", "train", "f")
    turns = [
        Turn("- carrot: raw", "look", Step("- carrot: raw", 0.0, False, False, "nothing happens", ("a meal before",))),
        Turn("- carrot: raw", "cook carrot", Step("- carrot: fried", 1.0, True, True, "it is right")),
    ]
    return Trajectory(task, origin, turns)


def traces_of(tracker: Tracker, stage: str):
    run_id = tracker.stage(stage)._run_id()
    return MlflowClient(tracker.client.tracking_uri).search_traces(locations=[tracker.experiment_id], run_id=run_id)


def test_a_rollout_is_a_trace_of_its_stage_and_is_there_once(tmp_path):
    for _ in range(2):
        tracker = Tracker(Settings(home=tmp_path), "cycle-1", {})
        tracker.stage("dream training").log_rollouts(lambda: [episode("t/1"), episode("t/2")], step=3)
        tracker.flush()
    first, second = sorted(traces_of(tracker, "dream training"), key=lambda one: one.info.tags["task_id"])
    assert (first.info.tags["task_id"], second.info.tags["task_id"]) == ("t/1", "t/2")
    assert first.info.tags["mlflow.traceName"] == "dream rollout of t/1"
    assert first.info.tags["success"] == "true"
    spans = {span.name: span for span in first.data.spans}
    assert set(spans) == {"dream rollout of t/1", "look", "retrieve", "cook carrot"}
    assert spans["look"].inputs == {"state": "- carrot: raw", "action": "look"}
    assert spans["retrieve"].outputs == [{"page_content": "a meal before"}]
    assert spans["cook carrot"].outputs == {
        "reasoning": "it is right",
        "next_state": "- carrot: fried",
        "dream_reward": 1.0,
        "done": True,
    }


def test_each_home_has_its_own_traces(tmp_path):
    trackers = [Tracker(Settings(home=tmp_path / name), "cycle-1", {}) for name in "ab"]
    for tracker, task in zip(trackers, ("t/a", "t/b"), strict=True):
        tracker.stage("calibrate").log_rollouts(lambda task=task: [episode(task, "real")])
        tracker.flush()
    found = [[one.info.tags["task_id"] for one in traces_of(tracker, "calibrate")] for tracker in trackers]
    assert found == [["t/a"], ["t/b"]]
