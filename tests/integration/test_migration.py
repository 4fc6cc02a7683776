"""Replay store of the first schema version, on a real LanceDB: its rows stay, and its logs are named by their ids."""

import lancedb
import pyarrow as arrow
import pytest
from rich.console import Console

from infra.context import RunContext, replay_store, set_run_context
from infra.progress.progress import Display
from infra.settings import settings
from infra.storage.replay_store import ReplayStore
from infra.tracking.tracker import Tracker
from models.retrieval.encoders import HashingEncoder
from schemas.recipes.data import RetrievalRecipe
from schemas.records import AgentTask, Step, Trajectory, Turn
from schemas.tables import SCHEMA_VERSION, transitions_schema
from tasks.data.rows import Provenance, rows_of, trajectory_id
from tasks.data.store_rows import store_logs

pytestmark = pytest.mark.integration


_LATER = ("run", "thought")
"""Columns that the first version did not have."""


def logged(name: str, *actions: str) -> Trajectory:
    turns = [
        Turn(f"- at: {i}", action, Step(f"- at: {i + 1}", 0.0, done=False, success=False, reasoning=""))
        for i, action in enumerate(actions)
    ]
    return Trajectory(AgentTask("t", "do it", "train", "f"), "real", turns, truncated=True, episode_id=name)


def first_version_rows(trajectory: Trajectory) -> list[dict]:
    """Return rows as the first version wrote them: named by content, and without a run."""
    name = trajectory_id(trajectory)
    rows = rows_of([trajectory], Provenance("r", 0), HashingEncoder())
    old = [{**row, "trajectory_id": name, "row_id": f"{name}/{row['turn']}", "schema_version": 1} for row in rows]
    return [{key: value for key, value in row.items() if key not in _LATER} for row in old]


@pytest.fixture
def old_home(home):
    rows = first_version_rows(logged("1", "a", "b"))
    schema = transitions_schema(len(rows[0]["vector"]))
    without_run = arrow.schema([field for field in schema if field.name not in _LATER])
    table = lancedb.connect(settings().replay_store_uri).create_table(
        "transitions", arrow.Table.from_pylist(rows, schema=without_run)
    )
    table.tags.create("old-logs", table.version)
    set_run_context(RunContext("new", "recipe", Tracker(settings(), "new", {}), Display(Console(quiet=True))))
    return home


def test_rows_of_the_first_version_get_a_run_and_pinned_versions_stay(old_home):
    store = ReplayStore(settings())
    assert [(row["run"], row["thought"]) for row in store.read("transitions")] == [("", "")] * 2
    assert "run" not in store.read("transitions", as_of="old-logs")[0]
    pinned = store.read("transitions", columns=("action", "thought"), as_of="old-logs")
    assert pinned == [{"action": "a"}, {"action": "b"}]
    assert len(ReplayStore(settings()).read("transitions")) == 2, "once is enough"


def test_logs_that_are_ingested_again_are_named_by_their_ids_and_not_stored_twice(old_home):
    old_ids = {row["row_id"] for row in replay_store().read("transitions")}
    store_logs([logged("1", "a", "b"), logged("2", "c")], Provenance("r", 0, run="new"), RetrievalRecipe())
    rows = replay_store().read("transitions")
    assert len(rows) == 3
    assert not old_ids & {row["row_id"] for row in rows}
    assert {row["schema_version"] for row in rows} == {SCHEMA_VERSION}
    assert {row["run"] for row in rows} == {"new"}


def test_an_episode_that_grew_shrank_or_changed_replaces_what_is_stored_of_it_and_others_keep_their_reasoning(
    in_a_cycle,
):
    def store(*episodes: Trajectory) -> None:
        store_logs(list(episodes), Provenance("r", 0), RetrievalRecipe())

    store(logged("1", "a", "b"), logged("2", "c"), logged("3", "x", "y"))
    explained = [{**row, "reasoning": "so"} for row in replay_store().read("transitions")]
    replay_store().upsert("transitions", explained, "explained")
    store(logged("1", "a", "b", "c"), logged("2", "c"), logged("3", "z"))
    rows = {(row["action"], row["reasoning"]) for row in replay_store().read("transitions")}
    assert rows == {("a", "so"), ("b", "so"), ("c", ""), ("c", "so"), ("z", "")}
    pinned = replay_store().read("transitions", as_of="explained")
    assert len(pinned) == 5, "what an earlier run read is there"
