"""Bad input, end to end: named before anything starts, or quarantined with reasons; never a traceback."""

import json
import shutil
import subprocess

import pytest

from tasks.backbones.find_backbone import SHIPPED
from tests.command_line import COMMAND, TOY, changed, dreamgym_here, environment
from tests.logged import logged_rows

pytestmark = pytest.mark.e2e


@pytest.mark.usefixtures("shared_prefect")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no-such-recipe"], "no recipe 'no-such-recipe'"),
        (["check", "textworld-tiny", "--set", "rl.group_sise=8"], "rl.group_sise"),
        (["check", "textworld-tiny", "--set", "rl.group_size=many"], "rl.group_size"),
        (["check", "textworld-tiny", "--set", "rl.group_size=0"], "greater than or equal to 1"),
        (["check", "textworld-tiny", "--set", "rl.group_size=1"], "nothing to compare an episode with"),
        (["check", "textworld-tiny", "--set", "annotate.annotator=teacher"], "needs annotate.teacher_model"),
        (["run", "textworld-tiny", "--set", "backbone.model=nobody/nothing"], "backbone.revision"),
        (["run", "textworld-tiny", "--set", "ingest.path=missing.jsonl"], "no such file"),
        (["show", "nothing"], "no run in this home yet"),
    ],
)
def test_bad_input_is_named_and_exits_with_2(tmp_path, arguments, message):
    done = dreamgym_here(tmp_path, *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_what_cannot_fit_is_refused_before_anything_starts(tmp_path):
    """The network has 90 billion weights; only its configuration is there."""
    shutil.copytree(SHIPPED / "textworld-tiny", tmp_path / "huge", ignore=shutil.ignore_patterns("*.safetensors"))
    file = tmp_path / "huge" / "config.json"
    wide = {"hidden_size": 16384, "intermediate_size": 57344, "num_hidden_layers": 32, "layer_types": None}
    file.write_text(json.dumps(json.loads(file.read_text()) | wide))
    done = dreamgym_here(tmp_path, "check", "textworld-tiny", "--set", f"backbone.model={file.parent}", "--json")
    assert done.returncode == 2
    estimate = json.loads(done.stdout)["estimate"]
    assert estimate["stages"]["train policy"]["weights"] > 2e11 > estimate["available"]
    assert "--set training.gradient_checkpointing=true, --set training.lora_rank=16" in done.stderr.replace("\n", " ")


def test_a_misspelt_setting_is_refused(tmp_path):
    done = subprocess.run(
        [COMMAND, "show"],
        env={**environment(tmp_path), "DREAMGYM_HOEM": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "DREAMGYM_HOEM" in done.stderr


@pytest.mark.usefixtures("shared_prefect")
def test_a_log_of_ones_own_is_taken_and_what_does_not_fit_is_quarantined(tmp_path):
    rows = logged_rows(10)
    strangers = [{**row, "family": "soup", "trajectory_id": "stranger"} for row in rows if row["seed"] == 0]
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join(json.dumps(row) for row in rows + strangers))
    done = dreamgym_here(
        tmp_path,
        "run",
        "textworld-tiny",
        "--only",
        "experience",
        "--json",
        *changed(*TOY, "environment.max_steps=8", f"ingest.path={log}"),
    )
    assert done.returncode == 0, done.stderr
    assert f"quarantined {len(strangers)} rows: family 'soup' is not in the recipe" in done.stderr.replace("\n", " ")
    (logs,) = [json.loads(done.stdout)["lineage"]["logs"]["__reference__"]["notes"]]
    assert (logs["num_episodes"], logs["num_transitions"]) == (10, len(rows))
    seen = json.loads(dreamgym_here(tmp_path, "trajectories", "--origin", "real", "--limit", "100", "--json").stdout)
    assert "our expert" in {turn["source"] for episode in seen for turn in episode["turns"]}
    assert all(turn["reasoning"] for episode in seen for turn in episode["turns"])
