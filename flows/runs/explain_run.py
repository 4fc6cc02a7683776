"""Explain why a run was started, and for each step which input differed from another run's."""

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from flows.runs.run_key import differences
from infra.storage.run_records import records, steps_of
from schemas.recipes.recipe import flat_fields
from schemas.runs import Record, RunKey

_MISSING = "absent"


def explanation(record: Record, other: Record | None) -> dict[str, Any]:
    """Return why a run was started, and why each of its steps ran.

    Args:
        record: Record of the run.
        other: Run to compare with; None: the previous run of the same recipe.
    """
    other = other or _before(record)
    explained: dict[str, Any] = {
        "run_id": record["run_id"],
        "reasons": record["reasons"],
        "other": other and other["run_id"],
    }
    if other and record["key"] and other["key"]:
        explained["differences"] = differences(
            RunKey.model_validate(other["key"]), RunKey.model_validate(record["key"])
        )
    return {**explained, "steps": _steps(steps_of(record["run_id"]), steps_of(other["run_id"]) if other else None)}


def _before(record: Record) -> Record | None:
    name = record["recipe"]["name"]
    earlier = [one for one in records() if one["recipe"]["name"] == name and one["number"] < record["number"]]
    return earlier[-1] if earlier else None


def _steps(mine: dict[str, Any], theirs: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return each step with its differences; the nth call of a task is compared with the nth call in the other run."""
    counts: dict[str, int] = {}
    explained: list[dict[str, Any]] = []
    for step in mine["steps"]:
        task = step["task"]
        number = counts[task] = counts.get(task, -1) + 1
        row = {"task": task, "number": number, "taken_over": step["taken_over"], "made_by": step["made_by"]}
        explained.append({**row, "differs": _differs(step, number, mine, theirs) if theirs else []})
    return explained


def _differs(step: dict[str, Any], number: int, mine: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    task = step["task"]
    calls = [one for one in theirs["steps"] if one["task"] == task]
    if number >= len(calls):
        return ["the other run has no such step"]
    parts, others = mine["step_tasks"][task], theirs["step_tasks"][task]
    return [
        *_inputs(step["inputs"], calls[number]["inputs"], mine["step_sections"], theirs["step_sections"]),
        *(f"code {name}" for name in _different(others["code"], parts["code"])),
        *_values("package", others["packages"], parts["packages"]),
        *_values("setting", others["settings"], parts["settings"]),
    ]


def _inputs(
    mine: dict[str, Any], theirs: dict[str, Any], sections: dict[str, Any], other_sections: dict[str, Any]
) -> Iterator[str]:
    for name in _different(theirs, mine):
        before, after = theirs.get(name), mine.get(name)
        if _is_section(before, other_sections) or _is_section(after, sections):
            earlier, now = other_sections.get(before or "", {}), sections.get(after or "", {})
            yield from _values(f"recipe field, {name}", flat_fields(earlier), flat_fields(now))
        else:
            yield f"{name}: {_shown(before)} -> {_shown(after)}"


def _is_section(value: Any, sections: dict[str, Any]) -> bool:
    return isinstance(value, str) and value in sections


def _values(kind: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for name in _different(before, after):
        yield f"{kind} {name}: {_shown(before.get(name))} -> {_shown(after.get(name))}"


def _different(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]


def _shown(value: Any) -> str:
    text = _MISSING if value is None else str(value)
    return text if len(text) <= 40 else f"{text[:12]}..."


def print_explanation(explained: dict[str, Any]) -> None:
    """Print the explanation as lines and a table."""
    console = Console(highlight=False)
    console.print(f"run {explained['run_id']} was begun because: {'; '.join(explained['reasons']) or 'not known'}")
    if not explained["steps"]:
        console.print("its steps are not known: it was killed, or an earlier version of dreamgym ran it")
        return
    against = f", against run {explained['other']}" if explained["other"] else ""
    table = Table(title=f"Steps of {explained['run_id']}{against}")
    for heading in ("step", "made by", "what differs"):
        table.add_column(heading, overflow="fold")
    for step in explained["steps"]:
        maker = f"run {step['made_by']}" if step["taken_over"] else "this run"
        table.add_row(f"{step['task']} {step['number'] + 1}", maker, "; ".join(step["differs"]))
    console.print(table)
