"""Bad input: every row of a log is taken or quarantined with a reason."""

import json
from pathlib import Path

import pytest

from infra.context import replay_store
from schemas.errors import DataError
from schemas.recipes.data import IngestRecipe, RetrievalRecipe
from schemas.recipes.environments import CookingRecipe
from schemas.records import Reference
from tasks.data.ingest import ingest
from tasks.logs.read_log import ReadLog, read_log

GOOD = {
    "trajectory_id": "t1",
    "turn": 0,
    "task_id": "task/1",
    "instruction": "recipe: carrot fried diced",
    "family": "f",
    "split": "train",
    "state": "- you: kitchen",
    "action": "eat meal",
    "next_state": "- you: hall",
    "reward": 0.0,
    "done": False,
    "success": False,
    "truncated": False,
    "source": "log",
    "seed": 1,
    "schema_version": 1,
}


def episode(name: str, **changes) -> list[dict]:
    first = {**GOOD, "trajectory_id": name}
    last = {
        **first,
        "turn": 1,
        "state": "- you: hall",
        "next_state": "- you: home",
        "reward": 1.0,
        "done": True,
        "success": True,
    }
    return [{**first, **changes}, last]


def read(tmp_path: Path, rows: list) -> ReadLog:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return read_log(path)


def test_good_trajectories_are_read_in_order(tmp_path):
    log = read(tmp_path, [*reversed(episode("a")), *episode("b")])
    assert not log.quarantined
    assert [len(t.turns) for t in log.trajectories] == [2, 2]
    assert all(t.success and t.reward == 1.0 for t in log.trajectories)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reward": float("nan")}, "reward is missing"),
        ({"reward": float("inf")}, "reward is no finite number"),
        ({"state": "x" * 10_000_000}, "state longer than"),
        ({"action": "eat\x07meal"}, "action contains control characters"),
        ({"state": "- a: b <|im_start|>system"}, "state contains a prompt marker"),
        ({"action": "eat[outcome] success"}, "action contains a prompt marker"),
        ({"schema_version": 7}, "schema_version is not 1"),
        ({"split": "prod"}, "split is not train"),
        ({"turn": "first"}, "turn has the wrong type"),
        ({"split": "test"}, "split is not train"),
        ({"done": "false"}, "done has the wrong type"),
        ({"task_id": 7}, "task_id has the wrong type"),
        ({"trajectory_id": ["bad"]}, "trajectory_id has the wrong type"),
        ({"state": "a kitchen"}, "state is not lines of the form"),
        ({"done": True}, "the trajectory continues after done"),
        ({"success": True}, "success without done"),
        ({"instruction": "  "}, "instruction is empty"),
        ({"next_state": "- you: elsewhere"}, "a state is not the one"),
    ],
)
def test_a_bad_row_is_quarantined_with_its_trajectory_and_the_others_are_taken(tmp_path, changes, reason):
    log = read(tmp_path, [*episode("bad", **changes), *episode("good")])
    assert [t.turns[0].action for t in log.trajectories] == ["eat meal"]
    assert len(log.quarantined) == 2
    assert any(row["reason"].startswith(reason) for row in log.quarantined), log.reasons
    assert log.num_rows == 4


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (episode("a")[1:], "a step of the trajectory is missing"),
        ([*episode("a"), episode("a")[1]], "a step stands twice"),
        (episode("a")[:1], "the trajectory ends without done"),
    ],
)
def test_a_trajectory_that_is_not_whole_is_quarantined(tmp_path, rows, reason):
    log = read(tmp_path, [*rows, *episode("good")])
    assert len(log.trajectories) == 1
    assert {row["reason"].startswith(reason) for row in log.quarantined} == {True}


def test_lines_that_are_no_json_are_kept_as_they_came_but_for_what_is_too_long(tmp_path):
    broken = ["{broken", "[1, 2]", "{" + 2_000 * "x"]
    log = read(tmp_path, [*broken, *episode("good")])
    assert len(log.trajectories) == 1
    assert {row["raw"] for row in log.quarantined} == {line[:2_000] for line in broken}


def test_nothing_is_lost(tmp_path):
    rows = [*episode("a", reward=float("nan")), *episode("b"), "junk", *episode("c")[:1]]
    log = read(tmp_path, rows)
    assert sum(len(t.turns) for t in log.trajectories) + len(log.quarantined) == len(rows)


def test_a_file_of_another_kind_is_named(tmp_path):
    path = tmp_path / "log.pkl"
    path.write_bytes(b"x")
    with pytest.raises(DataError, match=r"log\.pkl format \.pkl is not known"):
        read_log(path)


def test_missing_columns_are_named(tmp_path):
    with pytest.raises(DataError, match="columns missing: action"):
        read(tmp_path, [{key: value for key, value in GOOD.items() if key != "action"}])


def test_tasks_of_others_must_be_allowed_and_solvable_and_a_few_bad_rows_stop_nothing(in_a_cycle, tmp_path):
    kitchen = "- you: kitchen\n- carrot: counter raw uncut\n- knife: counter\n- stove: here"
    rows = [*episode("a", state=kitchen), *episode("b", state=kitchen), *episode("no carrot")]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(map(json.dumps, rows)))

    def ingested(**changes) -> Reference:
        recipe = IngestRecipe(path=str(log), **changes)
        return ingest.__wrapped__(CookingRecipe(), recipe, RetrievalRecipe(), 0, "")

    with pytest.raises(DataError, match=r"100% of 6 rows .*family 'f' is not in the recipe"):
        ingested(max_bad_share=0.4)
    with pytest.raises(DataError, match=r"33% of 6 rows .*nothing to cook called 'carrot'"):
        ingested(require_known_tasks=False, max_bad_share=0.3)
    assert len(replay_store().read("quarantine")) == len(rows)
    assert ingested(require_known_tasks=False, max_bad_share=0.4).notes["num_episodes"] == 2
