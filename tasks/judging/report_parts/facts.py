"""Facts of a run: its cost, its origin, and the commands to go on with."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from markupsafe import Markup

from infra.pages.charts import long_bars
from infra.pages.wording import count, moment
from infra.progress.stage_labels import stage_label
from schemas.recipes.recipe import Recipe
from schemas.runs import Record

_NUM_STAGES = 10


@dataclass(frozen=True, slots=True)
class Next:
    """Command to go on with, and its purpose."""

    purpose: str
    command: str


def real_steps(results: Mapping[str, Any]) -> dict[str, int]:
    """Return real environment steps by purpose."""
    trained = sum(one["real_interactions"] for one in results.values() if isinstance(one, dict))
    return {
        "read from logs": results["offline_interactions"],
        "trained on": trained,
        "to compare dream and real": results["calibration_interactions"],
        "to evaluate": results["evaluation_interactions"],
    }


def time_chart(stage_seconds: Mapping[str, float]) -> Markup:
    """Draw the longest stages, and the rest as one bar."""
    longest = dict(sorted(stage_seconds.items(), key=lambda one: -one[1]))
    shown = dict(islice(longest.items(), _NUM_STAGES))
    rest = {f"{len(longest) - len(shown)} shorter stages": sum(longest.values()) - sum(shown.values())}
    lengths = shown | (rest if len(longest) > len(shown) else {})
    unit, factor = ("minutes", 60) if sum(lengths.values()) >= 120 else ("seconds", 1)
    return long_bars(
        "Time by stage", {stage_label(name): one / factor for name, one in lengths.items()}, f"time ({unit})"
    )


def stage_rows(record: Record) -> list[list[str]]:
    """Return one row per stage: time, tokens, episodes without an outcome with their reasons, and limits that were met."""
    counts = [record.get(name, {}) for name in ("stage_failures", "stage_limits")]  # absent in records of older runs
    seconds = record["stage_seconds"]
    return [
        [
            stage_label(stage),
            f"{seconds[stage]:,.1f} s" if stage in seconds else "",
            count(record["stage_tokens"][stage]) if stage in record["stage_tokens"] else "",
            *("; ".join(f"{number:,}: {what}" for what, number in one.get(stage, {}).items()) for one in counts),
        ]
        for stage in dict.fromkeys((*seconds, *counts[-1]))  # predictions are part of other stages
    ]


def endpoint_rows(record: Record) -> list[list[str]]:
    """Return one row per model at the endpoint: requests, cached answers, tokens."""
    return [
        [model, count(cost["num_requests"]), count(cost["num_cached"]), count(_tokens(cost))]
        for model, cost in record.get("endpoint_costs", {}).items()
    ]


def _tokens(cost: Mapping[str, int]) -> int:
    return cost["num_prompt_tokens"] + cost["num_completion_tokens"]


def total_tokens(record: Record) -> int:
    """Return the tokens that the run's own networks and the endpoint computed."""
    return sum(record["stage_tokens"].values()) + sum(map(_tokens, record.get("endpoint_costs", {}).values()))


def origin(recipe: Recipe, record: Record) -> dict[str, str]:
    """Return when, why, from what and on what the run was made; unknown facts are left out."""
    known = {
        "run": record["run_id"],
        "time": f"{moment(record['started_utc'])} to {moment(record['finished_utc'])}",
        "started": "; ".join([record["trigger"], *record["reasons"]]),
        "recipe": f"{recipe.name}, seed {recipe.seed}, digest {record['recipe_digest'][:12]}",
        "environment": recipe.environment.name,
        "backbone": _backbone(recipe, record),
        "data": _data(record),
        "device": _device(record),
        "commit": record.get("commit", ""),
        "champion before": _champion(record),
    }
    return {name: value for name, value in known.items() if value}


def _notes(record: Record, name: str) -> Mapping[str, Any]:
    return record["lineage"].get(name, {}).get("__reference__", {}).get("notes", {})


def _backbone(recipe: Recipe, record: Record) -> str:
    name = "a network made of the logs" if recipe.backbone.scratch else recipe.backbone.model
    size = _notes(record, "backbone").get("num_parameters")
    return f"{name}, {count(size)} parameters" if size else name


def _data(record: Record) -> str:
    notes = _notes(record, "logs")
    if "num_episodes" not in notes:
        return ""
    return f"{count(notes['num_episodes'])} logged episodes, {count(notes['num_transitions'])} steps"


def _device(record: Record) -> str:
    key = record.get("key") or {}
    packages = {name: key.get("packages", {}).get(name) for name in ("torch", "transformers")}
    settings = key.get("settings", {}) | ({"device": record["device"]} if "device" in record else {})
    computing = [f"{name} {value}" if name != "device" else value for name, value in settings.items()]
    return ", ".join([*computing, *(f"{name} {version}" for name, version in packages.items() if version)])


def _champion(record: Record) -> str:
    return ((record["left_behind"] or {}).get("champion") or {}).get("sha256", "")[:12]


def next_steps(record: Record) -> list[Next]:
    """Return the commands that make sense after this run, the most important first."""
    run_id, name = record["run_id"], record["recipe"]["name"]
    look = [
        Next("Read its dreamt episodes", f"dreamgym trajectories {run_id} --origin dream"),
        Next("Open curves and traces in MLflow, and the flow in Prefect", "dreamgym ui"),
    ]
    if record.get("unproven"):
        return [*_without_environment(run_id), *look]
    if not record["gate"]:
        return [Next("Go on to the verdict", f"dreamgym run {name}"), *look]
    if not record["gate"]["passed"]:
        return [*_after_refusal(record), *look]
    promote = [] if record.get("promoted") else [Next("Make the policy champion", f"dreamgym promote {run_id}")]
    export = Next("Take the policy out as a Hugging Face folder", f"dreamgym export {run_id} ./my-agent")
    return [*promote, export, Next("Compare with the run before", "dreamgym compare --last 2"), *look]


def _without_environment(run_id: str) -> list[Next]:
    return [
        Next("Serve the experience model to other trainers", f"dreamgym serve {run_id}"),
        Next("Take the policy out as a Hugging Face folder", f"dreamgym export {run_id} ./my-agent"),
        Next("Promote the policy although nothing is proven", f"dreamgym promote {run_id} --unproven"),
    ]


def _after_refusal(record: Record) -> list[Next]:
    gate, name = record["gate"], record["recipe"]["name"]
    again = Next("Run the next seed: one run may have been bad luck", f"dreamgym run {name} --again")
    if not gate["calibrated"]:
        episodes = 2 * int(record["recipe"]["experience"].get("num_on_policy_episodes") or 200)
        more = f"dreamgym run {name} --set experience.num_on_policy_episodes={episodes}"
        return [Next("Fit the experience model on more real episodes of the policy", more), again]
    if gate["gain"]["mean"] > 0:
        tasks = 4 * record["results"]["dream"]["num_tasks"]
        more = f"dreamgym run {name} --set environment.num_test_tasks={tasks}"
        return [Next("Halve the interval with four times the test tasks", more), again]
    rounds = 2 * int(record["recipe"]["dream"]["num_rounds"])
    return [Next("Train longer in the dream", f"dreamgym run {name} --set dream.num_rounds={rounds}"), again]
