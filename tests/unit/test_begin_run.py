"""Begin or resume a run, or find no reason for one; on real stores, without playing anything."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.running import begin_run as beginning
from flows.running.begin_run import begin_run
from flows.runs.find_run import find_run
from flows.runs.run_key import differences, run_key
from flows.stage import Stage
from infra.promotion.panels import num_taken, take_panel
from infra.settings import settings
from infra.storage.blobs import FolderBlobs
from infra.storage.run_records import records, save_record
from infra.storage.table_migration import migrate
from schemas.errors import InputError, StorageError
from schemas.recipes.recipe import Recipe, stored_recipe
from schemas.runs import RunKey, Status, Trigger
from tests.fresh import use_home

RECIPE = Recipe(name="night")


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    use_home(tmp_path, monkeypatch)
    return tmp_path


def begin(recipe: Recipe = RECIPE, until: Stage = Stage.REAL, said: list | None = None, *, again: bool = False):
    return begin_run(recipe, until, Trigger.HAND, (said if said is not None else []).append, again=again)


def finish(record: dict, **more) -> None:
    ended = {"status": Status.FINISHED.value, "finished_utc": record["started_utc"], "reached": record["until"]}
    save_record({**record, **ended, "lineage": {}, **more})


def test_a_run_has_a_readable_id_and_a_reason_and_without_one_none_is_begun(home):
    first = begin().record
    today = datetime.now(UTC)
    assert first["run_id"] == f"night-{today:%Y%m%d}-1"
    assert first["reasons"] == ["the first run of this recipe here"]
    finish(first)
    again = begin()
    assert again.nothing_new
    assert again.record["run_id"] == first["run_id"]
    assert len(records()) == 1


def test_what_was_interrupted_goes_on_and_what_stopped_early_goes_further(home):
    first, said = begin(until=Stage.INGEST).record, []
    assert begin(until=Stage.INGEST, said=said).record["run_id"] == first["run_id"]
    assert said[0].startswith(f"run {first['run_id']}: 1 stage, no run")
    assert "was interrupted: going on" in said[1]
    finish(first)
    assert begin(until=Stage.INGEST).nothing_new
    further = begin(until=Stage.DREAM)
    assert not further.nothing_new
    assert (further.record["run_id"], further.record["reached"]) == (first["run_id"], "ingest")
    finish({**further.record, "until": "dream"})
    assert begin(until=Stage.INGEST).nothing_new, "it went further already"


def test_the_first_line_says_how_much_there_is_to_do_and_how_long_it_took_last_time(home):
    recipe, said = RECIPE.model_copy(update={"real": RECIPE.real.model_copy(update={"num_rounds": 2})}), []
    finish(begin(recipe, Stage.INGEST).record, results={"seconds": 9.0})
    finish(begin(recipe, Stage.INGEST, said, again=True).record)
    assert said[0].endswith("-2: 1 stage, about 9.0 s, as last time")
    finish(begin(recipe, again=True, said=said).record, results={"seconds": 420.0})
    assert said[2].endswith(": 5 stages, 22 rounds, no run of it ran here yet"), "as far as this one"
    begin(recipe, Stage.DREAM, said, again=True)
    assert said[4].endswith(": 3 stages, 20 rounds, about 7 min, as last time")


def test_new_changed_and_missing_logs_are_reasons_with_their_names(home):
    logs = home / "logs"
    logs.mkdir()
    (logs / "a.jsonl").write_text("1")
    (logs / "b.jsonl").write_text("1")
    recipe = RECIPE.model_copy(update={"ingest": RECIPE.ingest.model_copy(update={"path": str(logs)})})
    finish(begin(recipe).record)
    (logs / "a.jsonl").write_text("")
    (logs / "b.jsonl").unlink()
    (logs / "c.jsonl").write_text("1")
    said: list[str] = []
    second = begin(recipe, said=said).record
    assert second["reasons"] == ["new: logs/c.jsonl", "changed: logs/a.jsonl", "gone: logs/b.jsonl"]
    assert any("keeps what it read" in line for line in said)


def test_again_takes_the_next_seed_and_an_interrupted_one_its_own(home):
    finish(begin().record)
    second = begin(again=True)
    assert second.recipe.seed == 1
    assert begin(again=True).record["run_id"] == second.record["run_id"], "interrupted: the same command resumes it"
    finish(second.record)
    assert begin(again=True).recipe.seed == 2
    assert begin().nothing_new, "seed 0 was run"


def test_each_kind_of_difference_is_told():
    key = run_key(RECIPE)
    other = key.model_copy(
        update={
            "recipe": {"name": "night", "rl.learning_rate": 0.001},
            "packages": key.packages | {"torch": "9.9"},
            "settings": key.settings | {"device": "cuda"},
            "code": key.code | {"models/measurement/gate.py": "changed"},
        }
    )
    told = differences(key, other)
    assert any(one.startswith("recipe rl.learning_rate: default -> 0.001") for one in told)
    assert any(one.startswith("package torch") for one in told)
    assert any(one.startswith("setting device: cpu -> cuda") for one in told)
    assert any(one.startswith("code changed in models/measurement/gate.py") for one in told)
    assert differences(key, key) == []


def test_what_a_run_left_behind_is_read_and_is_no_reason(home):
    first = begin().record
    model = {"__reference__": {"uri": "", "sha256": "e" * 64, "kind": "model", "notes": {}}}
    finish(first, lineage={"experience_model": model, "experience": [model]})
    assert begin().nothing_new
    second = begin(again=True).record
    assert second["left_behind"]["experience_model"]["sha256"] == "e" * 64
    assert [one["sha256"] for one in second["left_behind"]["experience"]] == ["e" * 64]


def test_two_schedulers_that_start_the_same_night_begin_one_run(home):
    with ThreadPoolExecutor(4) as schedulers:
        begun = list(schedulers.map(lambda _: begin().record["run_id"], range(4)))
    assert len(set(begun)) == 1
    assert len(records()) == 1


def test_a_clock_that_jumps_back_changes_no_order(home, monkeypatch):
    finish(begin().record)

    class Earlier(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=3)

    monkeypatch.setattr(beginning, "datetime", Earlier)
    said: list[str] = []
    second = begin(again=True, said=said).record
    assert [one["run_id"] for one in records()][-1] == second["run_id"]
    assert second["run_id"].endswith(f"{datetime.now(UTC):%Y%m%d}-2")
    assert any("the clock says" in line for line in said)


@pytest.mark.parametrize(
    ("name", "told"),
    [("dream", "no run is called"), ("night", "2 runs begin with"), ("@champion", "there is no champion")],
)
def test_a_name_that_is_none_or_several_runs_is_told(home, name, told):
    finish(begin().record)
    finish(begin(again=True).record)
    with pytest.raises(InputError, match=told):
        find_run(name)


def test_a_start_from_a_run_that_is_not_there_begins_nothing(home):
    with pytest.raises(InputError, match="no run in this home"):
        begin(Recipe(name="night", start={"from": "run", "run": "dawn"}))
    assert records() == []


def test_a_run_by_its_whole_id_is_found_among_those_that_go_on_like_it(home):
    finish(begin().record)
    for _ in range(10):
        finish(begin(again=True).record)
    name = f"night-{datetime.now(UTC):%Y%m%d}-1"
    assert find_run(name)["run_id"] == name
    assert find_run("@latest")["run_id"].endswith("-11")


def test_a_run_without_results_says_what_became_of_it(home):
    begun = begin().record
    finish(begin(again=True).record)
    with pytest.raises(InputError, match=r"was interrupted.*dreamgym run night"):
        find_run(begun["run_id"])


def test_summaries_of_an_older_home_are_runs_too(home):
    recipe = RECIPE.model_dump(mode="json")
    recipe["gate"]["champion_margin"] = 0.01
    summary = {"cycle_id": "night-abc", "finished_utc": "2026-01-01T00:00:00+00:00", "recipe": recipe, "lineage": {}}
    FolderBlobs(Path(settings().object_store_uri)).write("cycles/night-abc.json", json.dumps(summary).encode())
    (older,) = records()
    assert (older["run_id"], older["status"]) == ("night-abc", "finished")
    assert stored_recipe(older["recipe"]) == RECIPE
    assert begin().record["reasons"] == ["the first run of this recipe here"]


def test_each_judgement_gets_a_panel_of_its_own_and_the_same_when_it_asks_again(tmp_path):
    blobs = FolderBlobs(tmp_path)
    with ThreadPoolExecutor(8) as judges:
        numbers = list(judges.map(lambda n: take_panel(blobs, "kitchen", f"run-{n}/dream"), range(8)))
    assert sorted(numbers) == list(range(8))
    assert [take_panel(blobs, "kitchen", f"run-{n}/dream") for n in range(8)] == numbers
    assert take_panel(blobs, "garden", "run-0/dream") == 0
    assert num_taken(blobs, "kitchen") == 8


def test_a_store_of_a_later_version_is_refused_and_left_as_it_is(tmp_path):
    blobs = FolderBlobs(tmp_path)
    blobs.write("schema-version.json", b'{"schema_version": 99}')

    class Empty:
        def list_tables(self, limit: int):
            return type("Tables", (), {"tables": ["transitions"]})()

    with pytest.raises(StorageError, match=r"schema version 99.*upgrade"):
        migrate(Empty(), blobs, "here")
    assert blobs.read("schema-version.json") == b'{"schema_version": 99}'


def test_a_key_survives_its_record():
    key = run_key(RECIPE)
    assert RunKey.model_validate(json.loads(key.model_dump_json())) == key


def test_a_longer_run_that_was_interrupted_is_not_finished_by_a_shorter_one(home):
    first = begin(until=Stage.REAL).record
    assert not begin(until=Stage.INGEST).nothing_new
    finish(first, reached="ingest")
    assert not begin(until=Stage.REAL).nothing_new
    finish(first, reached="evaluate", status=Status.FAILED.value)
    assert begin(until=Stage.DREAM).nothing_new, "its results stay as they are"


def test_a_policy_that_a_person_promoted_later_goes_on_for_real(home):
    record = begin().record
    finish(record)
    assert begin().nothing_new
    finish(record, promoted="dream")
    assert not begin().nothing_new
    assert begin(until=Stage.EVALUATE).nothing_new
