"""Real object store, replay store and tracking, with faults."""

import json
import multiprocessing
import os
import time
from pathlib import Path

import lancedb
import numpy as np
import pytest

import infra.storage.buckets
from infra.settings import Settings
from infra.storage.blobs import FolderBlobs, open_blobs
from infra.storage.buckets import BucketBlobs
from infra.storage.object_store import ObjectStore
from infra.storage.replay_store import ReplayStore
from infra.tracking.tracker import Tracker
from schemas.errors import InputError, IntegrityError, StorageError
from schemas.records import AgentTask, Reference, Step, Trajectory, Turn
from schemas.tables import EVALUATIONS_SCHEMA
from tasks.data.rows import Provenance, rows_of
from tests.command_line import dreamgym
from tests.integration.s3 import s3_server

SECRET = "planted-canary-93f1"


def row(name: str, task: str = "t") -> dict:
    return {
        "row_id": name,
        "task_id": task,
        "instruction": "i",
        "split": "train",
        "family": "f",
        "initial_state": "",
        "parent_id": "",
        "reward_entropy": 0.25,
        **Provenance("r", 0).columns(),
    }


def transition_rows(num_dimensions: int) -> list[dict]:
    class Zeros:
        def encode(self, texts):
            return np.zeros((len(texts), num_dimensions // 3), np.float32)

    task = AgentTask("t", "do it", "train", "f")
    turn = Turn("- a: b", "act", Step("- a: c", 1.0, done=True, success=True))
    return rows_of([Trajectory(task, "real", [turn])], Provenance("r", 0), Zeros())


@pytest.fixture(scope="module")
def s3():
    with s3_server("dreams", SECRET) as address:
        yield address


@pytest.fixture(params=["folder", "s3"])
def settings(request, tmp_path, s3, monkeypatch) -> Settings:
    if request.param == "folder":
        return Settings(home=tmp_path)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return Settings(
        home=tmp_path,
        object_store="s3://dreams/objects",
        replay_store=f"s3://dreams/{tmp_path.name}",
        s3_endpoint=s3,
        s3_access_key="key",
        s3_secret_key=SECRET,
    )


@pytest.mark.integration
def test_objects_come_back_and_equal_bytes_are_one_object(settings):
    store = ObjectStore(open_blobs(settings))
    first, second = store.put(b"dream", "report"), store.put(b"dream", "report")
    assert first.sha256 == second.sha256
    assert store.get(first) == b"dream"


@pytest.mark.integration
def test_what_is_more_than_a_request_may_carry_is_sent_in_parts(settings, monkeypatch):
    monkeypatch.setattr(infra.storage.buckets, "_PART_BYTES", 5 * 2**20)
    store = open_blobs(settings)
    for num_bytes in (12 * 2**20, 5 * 2**20):
        content = os.urandom(num_bytes)
        store.write("weights", content)
        assert store.read("weights") == content
        if isinstance(store, BucketBlobs):
            parts = store._client.head_object(**store._at("weights"))["ETag"].strip('"').partition("-")[2]
            assert parts == ("3" if num_bytes > 5 * 2**20 else "")


@pytest.mark.integration
@pytest.mark.parametrize("num_bytes", [0, 1, 12 * 2**20])
def test_a_file_is_moved_to_a_key_and_copied_back(settings, tmp_path, monkeypatch, num_bytes):
    monkeypatch.setattr(infra.storage.buckets, "_PART_BYTES", 5 * 2**20)
    store, file, content = open_blobs(settings), tmp_path / "file", os.urandom(num_bytes)
    for written in (b"what was there before", content):
        file.write_bytes(written)
        store.write_file("weights", file)
        assert not file.exists()
    assert store.read("weights") == content
    store.read_file("weights", file)
    assert file.read_bytes() == content
    with pytest.raises(StorageError, match="no weights"):
        store.read_file("no weights", file)


@pytest.mark.integration
def test_a_folder_comes_back_file_by_file(settings, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    (folder / "b.bin").write_bytes(bytes(1000))
    store = ObjectStore(open_blobs(settings))
    back = store.get_folder(store.put_folder(folder), tmp_path / "back")
    assert {p.name: p.read_bytes() for p in back.iterdir()} == {"a.json": b"{}", "b.bin": bytes(1000)}
    assert not any(folder.iterdir())


@pytest.mark.integration
def test_a_damaged_file_of_a_folder_is_named_and_not_handed_out(settings, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights.bin").write_bytes(bytes(1000))
    blobs = open_blobs(settings)
    stored = ObjectStore(blobs).put_folder(tmp_path / "model")
    (sha256,) = ObjectStore(blobs).get_json(stored).values()
    blobs.write(f"{sha256[:2]}/{sha256}", bytes(999))
    with pytest.raises(IntegrityError, match="is corrupt"):
        ObjectStore(blobs).get_folder(stored, tmp_path / "back")
    assert not any((tmp_path / "back").iterdir())


@pytest.mark.integration
def test_upserting_twice_adds_nothing(settings):
    store = ReplayStore(settings)
    rows = [row(f"r{i}") for i in range(50)]
    for _ in range(2):
        store.upsert("agent_tasks", rows)
        assert sorted(r["row_id"] for r in store.read("agent_tasks")) == sorted(r["row_id"] for r in rows)


def _upsert_at_once(home: Path, barrier) -> None:
    store = ReplayStore(Settings(home=home))
    for batch in range(8):
        barrier.wait(120)
        store.upsert("agent_tasks", [row(f"{batch}/{i}") for i in range(200)])


@pytest.mark.integration
def test_rows_that_two_processes_upsert_at_once_are_there_once(tmp_path):
    ReplayStore(Settings(home=tmp_path)).upsert("agent_tasks", [row("first")])
    processes = multiprocessing.get_context("spawn")
    barrier = processes.Barrier(2)
    writers = [processes.Process(target=_upsert_at_once, args=(tmp_path, barrier)) for _ in range(2)]
    for one in writers:
        one.start()
    for one in writers:
        one.join(300)
    assert [one.exitcode for one in writers] == [0, 0]
    stored = [r["row_id"] for r in ReplayStore(Settings(home=tmp_path)).read("agent_tasks", columns=["row_id"])]
    assert sorted(stored) == sorted({"first", *(f"{batch}/{i}" for batch in range(8) for i in range(200))})


@pytest.mark.integration
def test_a_table_of_many_writes_is_put_together_and_pinned_versions_stay(settings):
    store = ReplayStore(settings)
    store.upsert("agent_tasks", [row("first")], tag="logs")
    for number in range(60):
        store.upsert("agent_tasks", [row(f"r{number}")])
    store.upsert("agent_tasks", [row("first", task="changed")])
    table = store._database.open_table("agent_tasks")
    assert len(table.to_lance().get_fragments()) < 50
    assert len(store.read("agent_tasks")) == 61
    store.verify("agent_tasks", {"logs"})
    assert [one["task_id"] for one in store.read("agent_tasks", as_of="logs")] == ["t"]


def test_a_pinned_version_stays_as_it_was(settings):
    store = ReplayStore(settings)
    store.upsert("agent_tasks", [row("a")])
    version = store._database.open_table("agent_tasks").version
    store.upsert("agent_tasks", [row("b")])
    assert [r["row_id"] for r in store.read("agent_tasks", as_of=version)] == ["a"]


@pytest.mark.integration
def test_a_tag_pins_what_was_there_and_moves_when_it_is_given_again(settings):
    store = ReplayStore(settings)
    store.upsert("agent_tasks", [row("a")], tag="cycle-dream-0")
    store.upsert("agent_tasks", [row("b")], tag="cycle-dream-1")
    assert [r["row_id"] for r in store.read("agent_tasks", as_of="cycle-dream-0")] == ["a"]
    store.upsert("agent_tasks", [row("c")], tag="cycle-dream-0")
    assert len(store.read("agent_tasks", as_of="cycle-dream-0")) == 3
    with pytest.raises(InputError, match="cycle-dream-1"):
        store.read("agent_tasks", as_of="cycle-dream-9")


@pytest.mark.integration
def test_a_pinned_version_is_sealed_and_a_tag_that_somebody_moved_is_noticed(settings):
    store = ReplayStore(settings)
    store.upsert("agent_tasks", [row("a")], tag="logs")
    store.upsert("agent_tasks", [row("b")])
    ReplayStore(settings).verify("agent_tasks", {"logs"})
    opened = store._database.open_table("agent_tasks")
    opened.tags.update("logs", opened.version)
    with pytest.raises(IntegrityError, match="logs of table agent_tasks"):
        store.verify("agent_tasks", {"logs"})
    opened.tags.delete("logs")
    with pytest.raises(IntegrityError, match="logs of table agent_tasks"):
        store.verify("agent_tasks", {"logs"})
    with pytest.raises(StorageError, match="dream-0"):
        store.verify("agent_tasks", {"dream-0"})


@pytest.mark.integration
@pytest.mark.parametrize(
    "damage", [lambda b: bytes([b[0] ^ 1]) + b[1:], lambda b: b[:-1]], ids=["bit flip", "truncated"]
)
def test_a_corrupt_object_is_refused_and_named(tmp_path, damage):
    store = ObjectStore(FolderBlobs(tmp_path))
    reference = store.put(b"weights" * 100, "model")
    path = Path(reference.uri)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(IntegrityError, match=reference.sha256[:12]):
        store.get(reference)


@pytest.mark.integration
def test_a_missing_object_is_named(tmp_path):
    store = ObjectStore(FolderBlobs(tmp_path))
    reference = store.put(b"x", "model")
    Path(reference.uri).unlink()
    with pytest.raises(StorageError, match="is not in"):
        store.get(reference)


@pytest.mark.integration
def test_a_table_of_another_embedding_size_is_refused(tmp_path):
    store = ReplayStore(Settings(home=tmp_path))
    store.upsert("transitions", transition_rows(6))
    with pytest.raises(StorageError, match="vectors of 6 numbers, this recipe makes 12"):
        store.upsert("transitions", transition_rows(12))
    assert len(store.read("transitions")) == 1


@pytest.mark.integration
def test_a_table_of_another_version_is_refused(tmp_path):
    store = ReplayStore(Settings(home=tmp_path))
    earlier = EVALUATIONS_SCHEMA.remove(EVALUATIONS_SCHEMA.get_field_index("schema_version"))
    lancedb.connect(Settings(home=tmp_path).replay_store_uri).create_table("evaluations", schema=earlier)
    with pytest.raises(StorageError, match="only one of them has schema_version"):
        store.upsert("evaluations", [{"row_id": "a"}])


@pytest.mark.integration
def test_a_place_that_cannot_be_written_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StorageError, match="cannot write object"):
        ObjectStore(FolderBlobs(blocked / "objects")).put(b"x", "model")


def _write_until_killed(home: Path, acknowledged: Path) -> None:
    store = ReplayStore(Settings(home=home))
    for batch in range(10_000):
        store.upsert("agent_tasks", [row(f"{batch}/{i}") for i in range(20)])
        with acknowledged.open("a") as file:
            file.write(f"{batch}\n")
            file.flush()
            os.fsync(file.fileno())


@pytest.mark.integration
def test_kill_9_loses_no_acknowledged_row_and_leaves_no_half_batch(tmp_path):
    acknowledged = tmp_path / "acknowledged"
    acknowledged.touch()
    for _ in range(3):
        before = acknowledged.stat().st_size
        writer = multiprocessing.get_context("spawn").Process(target=_write_until_killed, args=(tmp_path, acknowledged))
        writer.start()
        while acknowledged.stat().st_size < before + 20:
            time.sleep(0.01)
        writer.kill()
        writer.join()
    stored = [r["row_id"] for r in ReplayStore(Settings(home=tmp_path)).read("agent_tasks")]
    assert len(stored) == len(set(stored))
    assert len(stored) % 20 == 0
    assert {f"{batch}/19" for batch in acknowledged.read_text().split()} <= set(stored)


@pytest.mark.integration
def test_metrics_survive_in_the_journal_and_are_counted_once(tmp_path):
    settings = Settings(home=tmp_path)
    first = Tracker(settings, "cycle-1", {})
    first.stage("dream").log_metrics({"loss": 1.0}, step=0)
    first.flush()
    journal = tmp_path / "journal" / "cycle-1" / "dream.jsonl"
    entry = {"step": 1, "time_ms": 1_700_000_000_000, "metrics": {"loss": 0.5}}
    with journal.open("a") as file:
        file.write(json.dumps(entry) + "\n" + '{"step": 2, "time')  # acknowledged, never shipped; then cut off
    for step in (2, 3):
        resumed = Tracker(settings, "cycle-1", {})
        stage = resumed.stage("dream")
        stage.log_metrics({"loss": 9.0}, step=1)
        stage.log_metrics({"loss": 0.25}, step=step)
        resumed.flush()
    assert resumed.parent.data.tags["resumed"] == "true"
    history = resumed.client.get_metric_history(stage._run_id(), "loss")
    assert sorted((m.step, m.value) for m in history) == [(0, 1.0), (1, 0.5), (2, 0.25), (3, 0.25)]
    runs = resumed.client.search_runs([resumed.experiment_id])
    assert len(runs) == 2
    resumed.close("FINISHED")
    assert {run.info.status for run in resumed.client.search_runs([resumed.experiment_id])} == {"FINISHED"}


@pytest.mark.integration
def test_what_is_logged_later_to_runs_that_ended_leaves_their_ends_alone(tmp_path):
    settings = Settings(home=tmp_path)
    first = Tracker(settings, "cycle-1", {})
    first.stage("evaluate").log_metrics({"success": 0.5})
    first.close("FINISHED")
    ended = ends_of(first)
    later = Tracker(settings, "cycle-1", {}, reopen=False)
    later.stage("evaluate").log_metrics({"success": 0.75}, step=1)
    later.stage("gate").log_metrics({"passed": 1.0})
    later.flush()
    assert ends_of(later).items() >= ended.items(), "not even while it is at work"
    later.close("FAILED")
    (new,) = ends_of(later).keys() - ended.keys()
    assert ends_of(later) == ended | {new: ends_of(later)[new]}
    assert ends_of(later)[new][0] == "FAILED"
    history = later.client.get_metric_history(later.stage("evaluate")._run_id(), "success")
    assert [one.value for one in history] == [0.5, 0.75]


def ends_of(tracker: Tracker) -> dict[str, tuple[str, int | None]]:
    """Return the status and end of every MLflow run, by id."""
    runs = tracker.client.search_runs([tracker.experiment_id])
    return {run.info.run_id: (run.info.status, run.info.end_time) for run in runs}


@pytest.mark.integration
def test_a_resumed_run_ends_anew_and_stages_it_did_not_touch_keep_their_ends(tmp_path):
    settings = Settings(home=tmp_path)
    first = Tracker(settings, "cycle-1", {})
    first.stage("ingest").log_metrics({"episodes": 2.0})
    first.close("FINISHED")
    cycle, ingest = first.parent.info.run_id, first.stage("ingest")._run_id()
    ended = ends_of(first)
    resumed = Tracker(settings, "cycle-1", {})
    assert ends_of(resumed)[cycle][0] == "RUNNING"
    resumed.close("KILLED")
    assert ends_of(resumed)[ingest] == ended[ingest]
    assert ends_of(resumed)[cycle][0] == "KILLED"
    assert ends_of(resumed)[cycle][1] >= ended[cycle][1]


@pytest.mark.integration
def test_secrets_are_not_shown(tmp_path):
    settings = Settings(
        home=tmp_path,
        s3_access_key="key",
        s3_secret_key=SECRET,
        endpoint_api_key=SECRET,
        tracking_uri=f"postgresql://me:{SECRET}@127.0.0.1:1/runs",
    )
    assert SECRET not in repr(settings)
    assert SECRET not in settings.model_dump_json()
    with pytest.raises(StorageError, match=r"me:\*\*\*@127\.0\.0\.1") as refused:
        Tracker(settings, "cycle", {})
    assert SECRET not in str(refused.value)


@pytest.mark.integration
def test_a_model_is_held_only_with_all_its_files(settings, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights.bin").write_bytes(bytes(100))
    there = ObjectStore(open_blobs(settings)).put_folder(folder)
    assert ObjectStore(open_blobs(settings)).holds(there)
    nowhere = Reference("x", "0" * 64, "model", {})
    assert not ObjectStore(open_blobs(settings)).holds(nowhere)


@pytest.mark.integration
def test_a_full_disk_is_named_and_leaves_nothing_half_written(small_disk):
    store = ObjectStore(FolderBlobs(small_disk))
    kept = store.put(b"first", "file")
    with pytest.raises(StorageError, match="No space left on device"):
        store.put(bytes(3_000_000), "file")
    assert store.get(kept) == b"first"
    assert [path.read_bytes() for path in small_disk.rglob("*") if path.is_file()] == [b"first"]


@pytest.mark.integration
def test_a_file_goes_to_another_disk_as_private_as_it_was_and_whole_or_not_at_all(small_disk, tmp_path):
    store, file = FolderBlobs(small_disk), tmp_path / "file"
    file.write_bytes(b"weights")
    store.write_file("small", file)
    file.write_bytes(bytes(3_000_000))
    with pytest.raises(StorageError, match="No space left on device"):
        store.write_file("large", file)
    (only,) = small_disk.iterdir()
    assert (only.name, only.read_bytes(), only.stat().st_mode & 0o777) == ("small", b"weights", 0o600)
    file.unlink()
    FolderBlobs(tmp_path).write("large", bytes(3_000_000))
    with pytest.raises(StorageError, match="is the disk full"):
        FolderBlobs(tmp_path).read_file("large", small_disk / "copy")


@pytest.mark.integration
def test_a_full_disk_leaves_the_rows_that_were_stored(small_disk):
    store = ReplayStore(Settings(home=small_disk))
    store.upsert("agent_tasks", [row("kept")])
    with pytest.raises(StorageError, match="whose other rows are intact"):
        store.upsert("agent_tasks", [row(f"big {i}") | {"initial_state": os.urandom(500_000).hex()} for i in range(9)])
    assert [r["row_id"] for r in store.read("agent_tasks")] == ["kept"]


@pytest.mark.integration
def test_a_home_that_cannot_be_written_exits_with_1_and_says_so():
    refused = dreamgym(Path("/sys/dreamgym"), "run", "textworld-tiny")
    assert refused.returncode == 1
    assert "/sys/dreamgym" in refused.stderr
    assert "Free space or fix permissions" in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.integration
def test_rows_that_stay_keep_the_reasoning_that_they_were_given(settings):
    store = ReplayStore(settings)
    plain = transition_rows(6)
    store.upsert("transitions", [{**one, "reasoning": "because"} for one in plain])
    store.upsert("transitions", plain, unless_same=("action", "next_state"))
    assert [one["reasoning"] for one in store.read("transitions")] == ["because"]
