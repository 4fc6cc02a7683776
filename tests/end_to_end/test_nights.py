"""Nights of scheduled retraining: more logs cause a run, each night reads what the last one left, nothing is lost."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from infra.settings import Settings
from infra.storage.blobs import open_blobs
from infra.storage.object_store import ObjectStore
from models.network.language_model import load_model
from schemas.records import Reference
from tests.command_line import COMMAND, LENIENT_GATE, SMALLER, TOY, changed, dreamgym, dreamgym_here, environment
from tests.logged import logged_rows, write_log

pytestmark = pytest.mark.e2e

NIGHT = (
    *TOY,
    *SMALLER,
    *LENIENT_GATE,
    "environment.num_train_tasks=12",
    "start.num_demonstrations=12",
    "rl.group_size=2",
    "ingest.from_store=true",
    "experience.start_from=last",
)
"""Changes for a recipe that reads all that earlier nights leave behind."""


def night(home: Path) -> list[str]:
    return ["run", "textworld-tiny", *changed(*NIGHT, f"ingest.path={home.parent / 'logs'}"), "--json"]


def run(home: Path, prefect_server: str) -> dict:
    done = dreamgym_here(home, *night(home), PREFECT_API_URL=prefect_server)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def listed(home: Path) -> list[dict]:
    return json.loads(dreamgym_here(home, "runs", "--json").stdout)


def digest(record: dict, name: str) -> str | list[str]:
    value = record["lineage"][name]
    several = [one["__reference__"]["sha256"] for one in (value if isinstance(value, list) else [value])]
    return several if isinstance(value, list) else several[0]


def champion_of(home: Path) -> str:
    promoted = [row["policy"] for row in history(home) if row["decision"] in ("promoted", "rolled back")]
    return promoted[-1]


def history(home: Path) -> list[dict]:
    return json.loads(dreamgym_here(home, "history", "--json").stdout)


@pytest.fixture(scope="module")
def nights(tmp_path_factory, prefect_server) -> tuple[Path, Path, dict, dict]:
    """Return a home after two nights, a copy of it from between them, and the record of each night."""
    home = tmp_path_factory.mktemp("nights") / "home"
    write_log(home.parent / "logs" / "monday.jsonl", logged_rows(6))
    first = run(home, prefect_server)
    between = home.parent / "between"
    shutil.copytree(home, between)
    write_log(home.parent / "logs" / "tuesday.jsonl", logged_rows(4, 6))
    return home, between, first, run(home, prefect_server)


def test_more_logs_are_a_reason_and_each_night_is_a_run_of_its_own(nights):
    home, _, first, second = nights
    rows = {row["run_id"]: row for row in listed(home)}
    assert list(rows) == [first["run_id"], second["run_id"]]
    assert {(row["recipe"], row["status"], row["trigger"]) for row in rows.values()} == {
        ("textworld-tiny", "finished", "by hand")
    }
    assert rows[second["run_id"]]["reasons"] == ["new: logs/tuesday.jsonl"]
    notes = [one["lineage"]["logs"]["__reference__"]["notes"]["num_episodes"] for one in (first, second)]
    assert notes == [6, 10]
    assert json.loads(dreamgym_here(home, "show", first["run_id"], "--json").stdout)["lineage"] == first["lineage"]
    compared = json.loads(dreamgym_here(home, "compare", first["run_id"], "@latest", "--json").stdout)
    assert compared["runs"] == [first["run_id"], second["run_id"]]
    last = json.loads(dreamgym_here(home, "compare", "--last", "2", "--json").stdout)
    assert [(one["run_id"], one["episodes"], one["new_episodes"]) for one in last] == [
        (first["run_id"], 6, 6),
        (second["run_id"], 10, 4),
    ]
    told = json.loads(dreamgym_here(home, "why", second["run_id"], "--json").stdout)
    differs = {(step["task"], step["number"]): step["differs"] for step in told["steps"]}
    assert any("log_files" in one for one in differs["ingest", 0])


def test_episodes_are_found_by_the_run_that_played_them(nights):
    home, _, first, second = nights
    for name, run_id in ((first["run_id"], first["run_id"]), ("@latest", second["run_id"])):
        found = json.loads(dreamgym_here(home, "trajectories", name, "--origin", "dream", "--json").stdout)
        assert {turn["run"] for episode in found for turn in episode["turns"]} == {run_id}


def test_steps_say_whether_they_were_taken_over(nights):
    _, _, first, second = nights
    assert first["steps"]
    assert not any(step["taken_over"] for step in first["steps"])
    taken_over = [step["task"] for step in second["steps"] if step["taken_over"]]
    assert "fetch_backbone" in taken_over
    assert "ingest" not in taken_over


def test_the_second_night_goes_on_from_what_the_first_left_behind(nights):
    home, _, first, second = nights
    fit = next(step for step in second["steps"] if step["task"] == "fit_experience_model")
    assert fit["inputs"]["model"] == digest(first, "experience_model")
    recalled = next(step for step in second["steps"] if step["task"] == "recall")
    stored = ObjectStore(open_blobs(Settings(home=home)))
    assert recalled["inputs"]["table_tag"] == f"{second['run_id']}-read"
    assert stored.holds(Reference("", recalled["made"][0], "trajectories"))
    champions = [digest(one, one["promoted"]) for one in (first, second)]
    assert champions[0] != champions[1] == champion_of(home)


def test_sim_to_real_starts_from_the_promoted_policy_and_is_judged(nights):
    home, _, *both = nights
    for record in both:
        real = [step for step in record["steps"] if step["task"] == "play_real_groups"]
        assert real[0]["inputs"]["policy"] == digest(record, "dream")
        judged = {
            row["policy"] for row in history(home) if row["decision"] == "judged" and row["by"] == record["run_id"]
        }
        assert judged == {digest(record, "dream"), digest(record, "sim_to_real")}
        assert record["real_gate"]["candidate"] == digest(record, "sim_to_real")


def test_every_judgement_has_test_tasks_of_its_own(nights):
    _, _, *both = nights
    panels = [record[gate]["panel"]["number"] for record in both for gate in ("gate", "real_gate")]
    assert panels == [0, 1, 2, 3]
    assert all(record["gate"]["panel"]["fresh"] for record in both)
    assert len({record["gate"]["evaluated_tasks"] for record in both}) == 2


def test_a_night_without_anything_new_says_so_soon_and_leaves_no_entry(nights, prefect_server):
    home, _, _, second = nights
    before, started = listed(home), time.monotonic()
    done = dreamgym(home, *night(home), PREFECT_API_URL=prefect_server)
    seconds = time.monotonic() - started
    assert done.returncode == 0, done.stderr
    assert f"nothing is new since run {second['run_id']}" in done.stderr.replace("\n", " ")
    assert json.loads(done.stdout)["run_id"] == second["run_id"]
    assert listed(home) == before
    checked = dreamgym_here(home, "check", *night(home)[1:])
    left = json.loads(checked.stdout)["taken_over"]
    assert (left["run_id"], left["num_taken_over"], left["first_to_do"]) == (second["run_id"], len(second["steps"]), "")
    print(f"nothing new after {seconds:.1f} s")


def test_killed_in_the_second_night_it_ends_with_the_same_digests(nights, prefect_server):
    home, between, _, second = nights
    command = night(home)
    process = subprocess.Popen(
        [COMMAND, *command],
        env=environment(between) | {"PREFECT_API_URL": prefect_server},
        start_new_session=True,
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    steps = between / "objects" / "results"
    begun = len(list(steps.iterdir()))
    while len(list(steps.iterdir())) < begun + 5:
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert [row["status"] for row in listed(between)] == ["finished", "killed"]
    resumed = json.loads(dreamgym_here(between, *command, PREFECT_API_URL=prefect_server).stdout)
    assert resumed["run_id"] == second["run_id"]
    for name in ("logs", "start", "experience", "experience_model", "dream", "sim_to_real"):
        assert digest(resumed, name) == digest(second, name), name
    assert [row["status"] for row in listed(between)] == ["finished", "finished"]


def test_a_recipe_may_start_from_the_champion_a_policy_of_a_run_or_the_backbone_as_it_is(nights, prefect_server):
    _, between, first, _ = nights
    expected = {
        ("start.from=champion",): champion_of(between),
        ("start.from=run", f"start.run={first['run_id']}", "start.policy=start"): digest(first, "start"),
        ("start.from=base",): digest(first, "backbone"),
    }
    for start, policy in expected.items():
        command = [*night(between), "--only", "experience", *changed(*start)]
        done = dreamgym_here(between, *command, PREFECT_API_URL=prefect_server)
        assert done.returncode == 0, done.stderr
        record = json.loads(done.stdout)
        assert digest(record, "start") == policy
        assert any("recipe start.from" in reason for reason in record["reasons"])


def test_the_exported_champion_gives_transformers_the_logits_that_our_network_has(nights):
    home, *_ = nights
    folder = home.parent / "my-agent"
    done = dreamgym_here(home, "export", "champion", str(folder))
    assert done.returncode == 0, done.stderr
    theirs, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor([tokenizer("[task] recipe: carrot fried", add_special_tokens=False)["input_ids"]])
    stored = home.parent / "stored"
    reference = Reference("", champion_of(home), "model")
    ObjectStore(open_blobs(Settings(home=home))).get_folder(reference, stored, but=("optimizer.safetensors",))
    ours = AutoModelForCausalLM.from_pretrained(stored)
    with torch.no_grad():
        expected = load_model(stored).logits(ids) if hasattr(load_model(stored), "logits") else ours(ids).logits
        assert torch.allclose(theirs(ids).logits, expected, atol=1e-5)


def test_maintenance_removes_nothing_that_a_run_names_and_rollback_brings_back_the_first_nights_champion(nights):
    home, _, first, second = nights
    blobs = open_blobs(Settings(home=home))
    old = time.time() - 90 * 24 * 3600
    for file in Path(blobs.root).rglob("*"):
        os.utime(file, (old, old))
    assert dreamgym_here(home, "maintain", "--keep-days", "1").returncode == 0
    store = ObjectStore(blobs)
    for record in (first, second):
        for value in record["lineage"].values():
            for one in value if isinstance(value, list) else [value]:
                assert store.holds(Reference(**one["__reference__"])), one
    stacked = [row["policy"] for row in history(home) if row["decision"] == "promoted"]
    while champion_of(home) != digest(first, first["promoted"]):
        back = dreamgym_here(home, "rollback", "--reason", "the second night's is worse")
        assert back.returncode == 0, back.stderr
    assert champion_of(home) in stacked[:2]
    found = json.loads(dreamgym_here(home, "show", "@champion", "--json").stdout)
    assert found["run_id"] == first["run_id"]
