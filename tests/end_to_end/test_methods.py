"""Whole runs with other methods than the default: step advantages, diversity, replay, refill, preferences on older dreams."""

import json
from pathlib import Path

import pytest

from infra.settings import Settings
from infra.storage.blobs import open_blobs
from infra.storage.object_store import ObjectStore
from infra.storage.replay_store import ReplayStore
from schemas.plain import restored
from schemas.records import Reference
from tests.command_line import TOY, changed, dreamgym_here

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("shared_prefect")]

STRONGER = (
    *("start.num_demonstrations=16", "start.renamed_copies=3", "start.sft.epochs=6"),
    *("experience.num_on_policy_episodes=6", "experience.sft.epochs=1"),
)
"""Changes for a start that wins some of its episodes, in a dream that lets it, so that groups teach something."""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """Return a home of all runs: what comes before their methods is made once."""
    return tmp_path_factory.mktemp("home")


def run(home, *changes: str) -> dict:
    done = dreamgym_here(
        home, "run", "textworld-tiny", *changed(*TOY, *STRONGER, *changes), "--only", "dream", "--json"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def tasks_of(record: dict) -> list[str]:
    return [step["task"] for step in record["steps"]]


def rounds_of(home, record: dict) -> list[dict]:
    measured = Reference(**record["lineage"]["measured"]["__reference__"])
    return restored(ObjectStore(open_blobs(Settings(home=home))).get_json(measured))["rounds"]


def test_step_advantages_diversity_self_imitation_a_sequence_level_loss_and_refilled_rounds(home):
    changes = (
        *("rl.replay.name=self-imitation", "rl.replay.warmup_rounds=0", "rl.auxiliary.name=self-distillation"),
        *("rl.advantage.name=gigpo", "rl.reward.name=darling", "rl.loss.name=gspo"),
        *("curriculum.method.name=refill", "curriculum.method.max_draws=2"),
        *("curriculum.generator.name=genenv", "curriculum.max_generated_share=0.5", "dream.calibrate_every=1"),
    )
    record = run(home, *changes)
    tasks = tasks_of(record)
    assert tasks.count("train_policy") == 2
    assert tasks.count("dream") > 2, "no toy round is informative as a whole, so that further groups are dreamt"
    assert len(record["lineage"]["dreams"]) == tasks.count("dream")
    assert tasks.count("train_generator") == 2
    assert all(round["ce"] > 0 for round in rounds_of(home, record)), "self-distillation has its own term"
    again = run(home, *changes)
    assert again["run_id"] == record["run_id"]


def test_preferences_by_progress_and_the_values_of_forks_in_what_older_policies_dreamt_from_snapshots(home):
    changes = (
        *("rl.loss.name=dpo", "rl.reward.name=hero", "rl.advantage.name=vine", "rl.advantage.num_continuations=2"),
        "dream.max_staleness=1",
        *("curriculum.method.name=snapshots", "curriculum.method.share=1"),
    )
    record = run(home, *changes)
    rows = ReplayStore(Settings(home=home)).read("agent_tasks")
    mine = [row for row in rows if row["run"] == record["run_id"]]
    assert any(row["task_id"].startswith(f"{row['parent_id']}#") for row in mine)
    assert tasks_of(record).count("train_policy") == tasks_of(record).count("value_states") == 2
    assert record["recipe"]["rl"]["loss"] == {"name": "dpo"}


def test_the_experience_model_learns_to_aggregate_its_predictions_and_to_judge_states(home):
    judge = (
        *("name=aggregate", "num_situations=48", "only_successes=false", "epochs=3"),
        *("num_rounds=2", "situations_per_round=16", "group_size=4"),
    )
    step_judge = ("name=stepwiser", "num_continuations=4", "dreamt_rounds=1")
    changes = (
        *(f"experience.judge.{one}" for one in judge),
        *(f"rl.advantage.{one}" for one in step_judge),
        *("experience.sft.epochs=0.3", "dream.max_gap=1"),
    )
    record = run(home, *changes)
    tasks = tasks_of(record)
    assert [tasks.count(one) for one in ("value_states", "teach_step_judge", "judge_states")] == [1, 1, 1]
    assert record["lineage"]["step_judge"] != record["lineage"]["experience_model"]
    made = [
        digest
        for step in record["steps"]
        if step["task"] in ("fit_experience_model", "teach_judge", "improve_judge")
        for digest in step["made"]
    ]
    assert len(made) == 4
    assert len(set(made)) > 2, "lessons change the model, and so does what reviews are worth"
    assert record["lineage"]["experience_model"]["__reference__"]["sha256"] == made[-1]
    assert run(home, *changes)["run_id"] == record["run_id"]
