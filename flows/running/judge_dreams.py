"""Judge the dreams of a finished run by the rubric of the paper, and keep the scores in its record."""

from typing import Any

from prefect import flow

from flows.loop.lineage import Lineage
from flows.run_session import run_session
from infra.context import run_context
from infra.progress.progress import Display
from infra.storage.run_records import record_of, save_record
from schemas.plain import plain, restored
from schemas.recipes.recipe import Recipe, stored_recipe
from schemas.records import Reference
from schemas.runs import Record
from tasks.judging.judge_predictions import judge_predictions
from tasks.running.predictors import put_endpoint_model

_OWN = "experience model"
_STAGE = "rubric"


def judge_dreams(record: Record, model: str, num_transitions: int, display: Display) -> dict[str, Any]:
    """Score dreamt predictions of a run; store the result under `rubric` in its record, by judge, and return it.

    Args:
        record: Record of a run with dreams (flows/planning/check_judge.py).
        model: Name of the judge at the endpoint; empty: the experience model of the run.
        num_transitions: Number of predictions to judge.
        display: Shows progress.
    """
    run_id, recipe = record["run_id"], stored_recipe(record["recipe"])
    with run_session(recipe, run_id, display, reopen=False):
        judgement = rubric_judgement.with_options(flow_run_name=f"rubric {run_id}")
        judged = plain(judgement(recipe, restored(record["lineage"]), model, num_transitions))
    judge = model or _OWN
    now = record_of(run_id)
    save_record({**now, "rubric": {**now.get("rubric", {}), judge: judged}})
    return {"run_id": run_id, "judge": judge, **judged}


@flow(name="rubric-judgement", validate_parameters=False)
def rubric_judgement(recipe: Recipe, references: dict[str, Any], model: str, num_transitions: int) -> dict[str, Any]:
    """Judge dreams of a finished run, and log the means of the latest judge to the run's stage `rubric`.

    Args:
        recipe: Recipe of the run.
        references: Lineage of the run.
        model: Name of the judge at the endpoint; empty: the experience model of the run.
        num_transitions: Number of predictions to judge.
    """
    made = Lineage.of_finished(references)
    judge = put_endpoint_model(model) if model else made.artifacts.experience_model
    dreams, replayed = made.artifacts.dreams, _replayed(made)
    judged = judge_predictions(dreams, replayed, judge, recipe.experience, recipe.engine, num_transitions, recipe.seed)
    stage = run_context().tracker.stage(_STAGE)
    stage.log_summary(_metrics(judged))
    stage.set_tags({"judge": model or _OWN, "scores": judged["judged"].sha256})
    return judged


def _replayed(made: Lineage) -> list[Reference]:
    """Return the stored dreams that were replayed for real; those of a policy under two names count once."""
    stored = [one["replayed_samples"] for one in made.evaluations.values() if "replayed_samples" in one]
    return list({one.sha256: one for one in stored}.values())


def _metrics(judged: dict[str, Any]) -> dict[str, float]:
    scores, replays = judged["scores"], judged["replays"]
    means = {f"{name}{end}": one[key] for name, one in scores.items() for end, key in _ENDS.items()}
    counts = {name: float(judged[name]) for name in ("num_judged", "num_unreadable", "num_broken")}
    difference = {"held_minus_wrong": replays["difference"]["mean"]} if "difference" in replays else {}
    return means | counts | difference


_ENDS = {"": "mean", "_low": "low", "_high": "high"}
