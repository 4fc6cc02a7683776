"""`check` and `recipes`: few lines that answer, and a refusal of what is missing here."""

import json
import re
import shutil
import sys

import pytest
import torch
from transformers import Gemma3TextConfig, T5Config

from tests.chat import byte_level_tokenizer, chat_tokenizer, sentencepiece_tokenizer
from tests.command_line import TOY, changed, dreamgym_here
from tests.unit.tiny import tiny_network

pytestmark = pytest.mark.integration


def test_check_answers_in_fifteen_lines_of_eighty_columns_and_says_what_to_type_next(tmp_path):
    done = dreamgym_here(tmp_path, "check", "textworld-tiny", *changed("dream.num_rounds=3"), COLUMNS="80")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 80
    assert lines[-1].split() == ["next", "dreamgym", "run", "textworld-tiny", "--set", "dream.num_rounds=3"]
    assert "nothing is missing" in done.stdout
    assert "3 rounds, 768 episodes of at most 8 steps" in done.stdout


def test_the_resolved_recipe_is_asked_for(tmp_path):
    resolved = json.loads(dreamgym_here(tmp_path, "check", "textworld-tiny", "--resolved").stdout)
    assert resolved["environment"]["num_test_tasks"] == 800
    assert resolved["rl"]["advantage"] == {"name": "grpo"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_recipe_for_gpus_is_refused_without_one_and_says_what_to_do(tmp_path):
    done = dreamgym_here(tmp_path, "check", "textworld-tiny", *changed("gpus=1"))
    assert done.returncode == 2
    assert "1 GPU, and torch finds none here" in done.stderr.replace("\n", " ")
    checked = json.loads(dreamgym_here(tmp_path, "check", "textworld-tiny", *changed("gpus=1"), "--json").stdout)
    assert len(checked["missing"]) == 1
    run = dreamgym_here(tmp_path, "run", "textworld-tiny", *changed("gpus=1"))
    assert run.returncode == 2, "what `check` refuses is not begun"
    assert "1 GPU, and torch finds none here" in run.stderr.replace("\n", " ")
    assert json.loads(dreamgym_here(tmp_path, "runs", "--json").stdout) == []
    placed = changed("engine.name=vllm", "engine.policy_gpus=[0]", "engine.experience_gpus=[1,2]")
    done = dreamgym_here(tmp_path, "check", "textworld-tiny", *placed)
    assert done.returncode == 2
    assert "3 GPUs, and torch finds none here" in done.stderr.replace("\n", " ")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_an_engine_that_is_left_to_this_machine_is_named(tmp_path):
    resolved = dreamgym_here(tmp_path, "check", "textworld-tiny", *changed("engine.name=auto"), "--resolved")
    assert json.loads(resolved.stdout)["engine"]["name"] == "torch"


def test_an_environment_without_its_data_is_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    done = dreamgym_here(tmp_path, "check", "alfworld-tiny", ALFWORLD_DATA=str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert "the environment alfworld" in done.stderr


def refused(home, recipe: str, *changes: str) -> str:
    """Return what is said of a recipe that cannot run here."""
    done = dreamgym_here(home, "check", recipe, *changed(*changes))
    assert done.returncode == 2, done.stdout
    assert not re.search("^next", done.stdout, re.MULTILINE)
    return " ".join(done.stderr.split())


def backbone(home, config) -> str:
    """Return the change of a recipe that names a backbone of this configuration."""
    config.save_pretrained(home / "backbone")
    byte_level_tokenizer().save_pretrained(home / "backbone")
    return f"backbone.model={home / 'backbone'}"


def test_a_network_that_would_stop_a_run_is_refused_before_it_begins(tmp_path):
    reason = refused(tmp_path, "textworld-tiny", backbone(tmp_path, T5Config(vocab_size=400, d_model=32, num_layers=1)))
    assert "the backbone: 't5' is no causal language model" in reason


@pytest.mark.parametrize("played_by", ["behaviour", "base"])
def test_a_tokenizer_that_a_run_could_not_train_with_is_refused_by_both(tmp_path, shared_prefect, played_by):
    tokenizer = sentencepiece_tokenizer()
    tiny_network(kind="llama", vocab_size=len(tokenizer)).save_pretrained(tmp_path / "backbone")
    tokenizer.save_pretrained(tmp_path / "backbone")
    changes = (f"backbone.model={tmp_path / 'backbone'}", f"ingest.played_by={played_by}", *TOY)
    reason = "tokenizer does not give a prediction back as it was written"
    assert reason in refused(tmp_path, "textworld-tiny", *changes)
    run = dreamgym_here(tmp_path, "run", "textworld-tiny", *changed(*changes))
    assert (run.returncode, reason in run.stderr) == (2, True), run.stderr


def test_a_network_that_transformers_computes_is_ready_on_a_single_rank(tmp_path):
    config = Gemma3TextConfig(vocab_size=400, hidden_size=32, intermediate_size=64, num_hidden_layers=1, head_dim=8)
    change = backbone(tmp_path, config)
    done = dreamgym_here(tmp_path, "check", "textworld-tiny", *changed(change), COLUMNS="200")
    assert done.returncode == 0, done.stderr
    assert "nothing is missing" in done.stdout
    assert "GiB at most" in done.stdout
    ranks = dreamgym_here(tmp_path, "check", "textworld-tiny", *changed(change), DREAMGYM_NUM_RANKS="2")
    assert ranks.returncode == 2
    assert "set DREAMGYM_NUM_RANKS=1" in " ".join(ranks.stderr.split())


def test_a_model_without_a_chat_template_is_no_chat_policy(tmp_path):
    assert "no chat template" in refused(tmp_path, "textworld-tiny", "policy.template=chat")
    said = 'policy.prompt="Do $task."'
    (tmp_path / "chat").mkdir()
    tiny_network(kind="llama", vocab_size=400).config.save_pretrained(tmp_path / "chat")
    chat_tokenizer().save_pretrained(tmp_path / "chat")
    model = f"backbone.model={tmp_path / 'chat'}"
    assert "policy.prompt has the fields $task" in refused(
        tmp_path, "textworld-tiny", model, "policy.template=chat", said
    )
    auxiliary = ("policy.template=chat", "rl.auxiliary.name=self-distillation")
    assert 'needs policy.template = "plain"' in refused(tmp_path, "textworld-tiny", model, *auxiliary)


def test_what_does_not_fit_onto_the_disk_is_refused(tmp_path, monkeypatch):
    fits = dreamgym_here(tmp_path, "check", "textworld-tiny")
    assert re.search(r"disk +0\.\d\d GiB of models and optimiser states, [\d.]+ GiB are free", fits.stdout)
    full = shutil.disk_usage(tmp_path)._replace(free=9)
    monkeypatch.setattr("tasks.planning.estimate.shutil.disk_usage", lambda _: full)
    assert "GiB of models and optimiser states, and 0.00 GiB are free" in refused(tmp_path, "textworld-tiny")


def test_adapters_without_their_package_are_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    assert "pip install 'dreamgym[lora]'" in refused(tmp_path, "textworld-tiny", "training.lora_rank=4")


def test_a_backbone_comes_from_one_place_and_scratch_can_be_switched_off(tmp_path):
    both = ("backbone.scratch={}", "backbone.model=smollm2-135m")
    assert "leave out one of them" in refused(tmp_path, "textworld-tiny", *both)
    off = changed("backbone.scratch={}", "backbone.scratch=false")
    assert dreamgym_here(tmp_path, "check", "textworld-tiny", *off).returncode == 0


def test_every_shipped_recipe_is_listed_with_hardware_and_time(tmp_path):
    listed = json.loads(dreamgym_here(tmp_path, "recipes", "--json").stdout)
    assert {"textworld-tiny", "alfworld-8b"} <= {one["name"] for one in listed}
    for one in listed:
        assert one.keys() == {"name", "description", "environment", "hardware", "duration"}
        assert one["duration"]
        assert "CPU" in one["hardware"] or "GPU" in one["hardware"]
    table = dreamgym_here(tmp_path, "recipes", COLUMNS="80").stdout
    assert max(map(len, table.splitlines())) <= 80


@pytest.mark.parametrize("command", ["recipes", "methods", "runs", "history"])
@pytest.mark.parametrize("columns", [60, 80])
def test_tables_fit(tmp_path, command, columns):
    shown = dreamgym_here(tmp_path, command, COLUMNS=str(columns))
    assert shown.returncode == 0, shown.stderr
    assert max(len(line) for line in shown.stdout.splitlines()) <= columns


def test_an_agent_loop_is_ready_and_its_memory_is_that_of_its_limits(tmp_path):
    tokenizer = chat_tokenizer()
    tiny_network(kind="llama", vocab_size=len(tokenizer) + 8).save_pretrained(tmp_path / "chat")
    tokenizer.save_pretrained(tmp_path / "chat")
    loop = ("environment={name='treasure-agent', families=['2']}", "policy.template=messages", "start.from=base")
    model = (f"backbone.model={tmp_path / 'chat'}", "ingest.played_by=base")
    short = ("policy.max_episode_tokens=400", "experience.max_prompt_tokens=400", "experience.max_new_tokens=40")
    done = dreamgym_here(tmp_path, "check", "textworld-tiny", *changed(*loop, *model, *short), COLUMNS="200")
    assert done.returncode == 0, done.stderr
    assert "GiB at most" in done.stdout


def test_two_ranks_share_all_that_is_trained_and_load_the_reference_beside_the_policy(tmp_path):
    one, two = (
        json.loads(dreamgym_here(tmp_path, "check", "textworld-tiny", "--json", DREAMGYM_NUM_RANKS=number).stdout)
        for number in ("1", "2")
    )
    alone, shared = (answer["estimate"]["stages"] for answer in (one, two))
    assert shared["start policy"]["weights"] == alone["start policy"]["weights"] / 2
    assert shared["train policy"]["gradients"] == alone["train policy"]["gradients"] / 2
    assert shared["train policy"]["weights"] == alone["train policy"]["weights"]


def test_ranks_that_train_adapters_load_the_weights_beneath_them_once(tmp_path):
    adapters = changed("training.lora_rank=4")
    told = dreamgym_here(tmp_path, "check", "textworld-tiny", *adapters, "--json", DREAMGYM_NUM_RANKS="2").stdout
    stages = json.loads(told)["estimate"]["stages"]
    update, cloning = stages["train policy"], stages["start policy"]
    assert update["weights"] == pytest.approx(cloning["weights"] + update["gradients"], abs=2)
