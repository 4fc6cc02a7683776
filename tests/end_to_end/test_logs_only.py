"""Logs and nothing else: a recipe is drafted from them, its run is judged on held-out logs, its dream is played."""

import json
import os
import pty
import subprocess
import tomllib
from pathlib import Path

import pytest

from flows.planning.load_recipe import load_recipe
from tests.command_line import COMMAND, changed, dreamgym_here, environment
from tests.end_to_end.test_dream_out import connected, serving
from tests.integration.retail_logs import write_logs

SMALL = (
    *("backbone.scratch.hidden_size=64", "backbone.scratch.num_layers=2", "start.renamed_copies=0"),
    *("experience.sft.learning_rate=2e-3", "experience.sft.epochs=6", "start.sft.learning_rate=2e-3"),
    "backbone.scratch.sft.tokens_per_update=1_024",
    *("rl.groups_per_round=2", "rl.group_size=2", "dream.num_rounds=1", "dream.calibrate_every=1"),
)


def answer(home: Path, *arguments: str) -> dict:
    """Return the JSON that a command answers."""
    return json.loads(dreamgym_here(home, *arguments, "--json").stdout)


@pytest.fixture(scope="module")
def home(tmp_path_factory, prefect_server):
    """A home with the logs, a recipe drafted from them, and a finished run of it at a very small size."""
    folder = tmp_path_factory.mktemp("home")
    write_logs(folder / "logs.json", num_tasks=20, num_trials=2)
    subprocess.run([COMMAND, "init", "shop", "--logs", "logs.json"], cwd=folder, env=environment(folder), check=True)
    done = dreamgym_here(folder, "run", str(folder / "shop.toml"), *changed(*SMALL), PREFECT_API_URL=prefect_server)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.e2e
def test_a_drafted_recipe_says_why_and_counts_what_is_there(home):
    text = (home / "shop.toml").read_text()
    assert "# the longest logged episode has 3 steps" in text
    assert tomllib.loads(text)["environment"]["name"] == "logs"
    checked = answer(home, "check", str(home / "shop.toml"))
    assert checked["missing"] == []
    plan = checked["plan"]
    assert (plan["logged_episodes"], plan["real_evaluation_episodes"], plan["max_real_training_steps"]) == (40, 0, 0)


@pytest.mark.e2e
def test_a_run_on_logs_is_judged_on_held_out_logs_and_proves_nothing(home):
    record = answer(home, "show")
    measured, dreamt = record["fidelity"], record["dreamt"]
    assert {"gain_over_unchanged_low", "gain_over_neighbour_low", "outcome_agreement"} <= measured.keys()
    assert measured["num_replayed"] + measured["num_broken"] > 0
    assert 0 <= dreamt["start"]["dream_success_low"] <= dreamt["start"]["dream_success"]
    assert (record["gate"], record["unproven"]["passed"], record["promoted"]) == ({}, False, "")
    assert "real_success" not in json.dumps(record["results"])
    train, held_out = (record["lineage"][name] for name in ("experience", "test_logs"))
    assert train[0]["__reference__"]["notes"]["num_episodes"] + held_out["__reference__"]["notes"]["num_episodes"] < 40
    report = (home / "reports" / f"{record['run_id']}.html").read_text()
    assert "Nothing is proven for real" in report
    assert "held-out logged transitions" in report


@pytest.mark.e2e
def test_nothing_is_promoted_without_saying_that_it_is_unproven(home):
    run_id = answer(home, "show")["run_id"]
    refused = dreamgym_here(home, "promote", run_id)
    assert (refused.returncode, "not proven for real" in refused.stderr) == (3, True)
    overruled = dreamgym_here(home, "promote", run_id, "--unproven")
    assert overruled.returncode in (0, 3)
    assert "not proven for real: no real" not in overruled.stderr, "other objections stand"


@pytest.mark.e2e
def test_the_card_of_a_policy_that_was_taken_out_says_that_it_is_not_proven(home, tmp_path):
    assert dreamgym_here(home, "export", answer(home, "show")["run_id"], str(tmp_path / "agent")).returncode == 0
    assert "Not proven in a real environment" in (tmp_path / "agent" / "README.md").read_text()


@pytest.mark.e2e
def test_the_dream_of_logs_is_played_from_their_first_states(home):
    with serving(home, "") as url, connected(f"{url}/ws") as playing:
        playing.send(json.dumps({"type": "reset", "data": {"seed": 0}}))
        begun = json.loads(playing.recv(timeout=60))["data"]["observation"]
        playing.send(json.dumps({"type": "step", "data": {"action": 'get_order(order_id="W0000")'}}))
        after = json.loads(playing.recv(timeout=60))["data"]
    assert begun["state"] == f"- line 1: {begun['instruction']}"
    assert (after["reward"], after["done"]) in ((0.0, False), (0.0, True), (1.0, True))


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("shop",), "give --logs, --environment, or both"),
        (("Shop", "--environment", "alfworld"), "is no name of a recipe"),
        (("shop", "--environment", "alfwrld"), "environment 'alfwrld' is not known: there are alfworld"),
        (("shop", "--environment", "logs"), 'environment "logs" needs --logs'),
        (("shop", "--logs", "nowhere"), "nowhere: no such file"),
        (("taken", "--environment", "alfworld"), "taken.toml is there already"),
    ],
)
def test_what_nothing_can_be_drafted_from_is_refused_with_nothing_written(tmp_path, monkeypatch, arguments, message):
    (tmp_path / "taken.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    done = dreamgym_here(tmp_path, "init", *arguments)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "shop.toml").exists()


@pytest.mark.e2e
def test_logs_without_a_success_need_a_model(tmp_path, monkeypatch):
    logs = tmp_path / "logs.json"
    write_logs(logs, num_tasks=6)
    logs.write_text(json.dumps([{**one, "reward": 0.0} for one in json.loads(logs.read_text())]))
    monkeypatch.chdir(tmp_path)
    arguments = ("init", "shop", "--logs", "logs.json")
    refused = dreamgym_here(tmp_path, *arguments)
    assert (refused.returncode, "no logged episode succeeded" in refused.stderr) == (2, True)
    done = dreamgym_here(tmp_path, *arguments, "--model", "smollm2-135m")
    assert done.returncode == 0, done.stderr
    drafted = load_recipe(str(tmp_path / "shop.toml"))
    assert (drafted.start.from_, drafted.policy.template, drafted.training.lora_rank) == ("base", "chat", 16)


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["textworld-cooking", "alfworld", "miniwob", "scienceworld", "webshop"])
def test_a_recipe_for_an_environment_is_the_shipped_one_or_a_draft(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert dreamgym_here(tmp_path, "init", "mine", "--environment", name).returncode == 0
    assert load_recipe(str(tmp_path / "mine.toml")).environment.name == name


@pytest.mark.e2e
def test_it_asks_on_a_terminal(tmp_path):
    write_logs(tmp_path / "logs.json", num_tasks=6)
    ours, theirs = pty.openpty()
    asking = subprocess.Popen(
        [COMMAND, "init", "shop"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=theirs,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.write(ours, b"logs.json\n\n")
    said, _ = asking.communicate(timeout=120)
    assert "Logs of your agent" in said
    assert load_recipe(str(tmp_path / "shop.toml")).environment.name == "logs"
