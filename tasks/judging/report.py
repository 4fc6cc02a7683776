"""Report of a run: one self-contained HTML page, logged to MLflow."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from infra.context import objects, run_context
from infra.pages.html_pages import write_page
from infra.pages.wording import points
from schemas.recipes.recipe import Recipe, flat_fields
from schemas.runs import Record
from tasks.judging.replayed_samples import pairs_of
from tasks.judging.report_parts import facts, gain, trust
from tasks.judging.report_parts.figures import curriculum, figures
from tasks.judging.report_parts.timeline import Timeline, timeline
from tasks.running.artifacts import get_tasks, get_trajectories

_TEMPLATE = Path(__file__).with_name("report.html.jinja")
_NUM_REAL_FAILURES = 2
_MAX_CHARACTERS = 100_000
"""Episodes are shown until their texts are about this long; the others are counted."""


def write_report(recipe: Recipe, summary: Record, made: Any) -> Path:
    """Write the page to home and the object store, attach it to the MLflow run, and return its path in home.

    Args:
        recipe: Recipe of the run.
        summary: Record of the run, with its results.
        made: Lineage of the flow, with rounds, calibrations and references.
    """
    path = write_page(run_context().run_id, _TEMPLATE, **contents(recipe, summary, made))
    page = path.read_bytes()
    stored = objects().put(page, "report")
    run_context().tracker.cycle().log_text(page.decode(), path.name)
    run_context().tracker.cycle().set_tags({"lineage.report": stored.sha256[:16]})
    return path


def contents(recipe: Recipe, record: Record, made: Any) -> dict[str, Any]:
    """Return everything that the page shows, by the name that its template uses."""
    return {
        "recipe": recipe,
        "record": record,
        "results": record["results"],
        "gate": record["gate"],
        "unproven": record.get("unproven"),
        "lineage": _digests(record),
        "fields": flat_fields(recipe.model_dump(mode="json")),
        "fidelity": made.fidelity,
        **_gained(record, made),
        **_trusted(record, made),
        **_facts(recipe, record),
        **_details(made),
    }


def _gained(record: Record, made: Any) -> dict[str, Any]:
    results, evaluations = record["results"], made.evaluations
    families = {family for one in evaluations.values() for family in one["families"].values()}
    several = len(families) > 1
    return {
        "headline": gain.headline(record),
        "real_headline": gain.real_headline(record),
        "memorised": gain.memorised(made.memorisation, made.calibrations),
        "policies": gain.policies_of(results),
        "success_chart": gain.success_chart(results) if gain.policies_of(results) else "",
        "num_families": len(families),
        "family_table": gain.family_table(evaluations, record["gate"]) if families else None,
        "family_chart": gain.family_chart(evaluations) if several else "",
    }


def _trusted(record: Record, made: Any) -> dict[str, Any]:
    gate, evaluation, unproven = record["gate"], made.evaluations.get("dream"), record.get("unproven")
    on_logs = trust.checks_on_logs(made.fidelity, unproven["thresholds"]) if unproven else []
    return {
        "trusted": trust.trust_on_logs() if unproven else trust.trust(gate),
        "checks": trust.trust_checks(evaluation, gate) if evaluation and gate else on_logs,
        "lemma": trust.lemma(evaluation) if evaluation else "",
        "verdicts": trust.verdicts(record),
        "over_champion": points(gate["over_champion"]["gain"]) if gate and gate["over_champion"] else "",
    }


def _facts(recipe: Recipe, record: Record) -> dict[str, Any]:
    return {
        "num_tokens": facts.total_tokens(record),
        "real_steps": facts.real_steps(record["results"]),
        "time_chart": facts.time_chart(record["stage_seconds"]) if record["stage_seconds"] else "",
        "stage_rows": facts.stage_rows(record),
        "endpoint_rows": facts.endpoint_rows(record),
        "origin": facts.origin(recipe, record),
        "next_steps": facts.next_steps(record),
    }


def _details(made: Any) -> dict[str, Any]:
    details = list(figures(made.rounds, made.calibrations))
    if "pool" in made.artifacts and made.entropies:
        caption = "Tasks by the reward entropy of their latest group; the curriculum prefers those on the right."
        details.append((curriculum(get_tasks(made.artifacts.pool), made.entropies), caption))
    episodes = list(_episodes(made.evaluations.get("dream") or made.dreamt.get("dream")))
    shown = _as_many_as_fit(episodes)
    return {"figures": details, "episodes": shown, "num_left_out": len(episodes) - len(shown)}


def _episodes(evaluation: dict[str, Any] | None) -> Iterator[Timeline]:
    """Yield dreamt episodes of the candidate beside their real replays, then some of its real failures."""
    if evaluation is None:
        return
    samples = get_trajectories(evaluation["samples"])
    if "replayed_samples" in evaluation:
        yield from (timeline(*pair) for pair in pairs_of(get_trajectories(evaluation["replayed_samples"])))
    else:  # a run of a version that stored no replays
        yield from (timeline(one) for one in [one for one in samples if one.origin == "dream"][:_NUM_REAL_FAILURES])
    failures = [one for one in samples if one.origin == "real" and not one.success]
    yield from (timeline(one) for one in failures[:_NUM_REAL_FAILURES])


def _as_many_as_fit(episodes: list[Timeline]) -> list[Timeline]:
    """Return the first episodes that fit on the page; of a single one that does not, the first steps."""
    sizes = accumulate(one.num_characters for one in episodes)
    shown = episodes[: sum(size <= _MAX_CHARACTERS for size in sizes)]
    return shown or [one.first_steps(_MAX_CHARACTERS) for one in episodes[:1]]


def _digests(record: Record) -> list[list[str]]:
    """Return name and sha256 of the recipe and of each of the run's inputs and results."""
    several = {name: one if isinstance(one, list) else [one] for name, one in record["lineage"].items()}
    rows = [["recipe", record["recipe_digest"]]]
    for name, values in several.items():
        numbered = [[f"{name.replace('_', ' ')} {place}", one] for place, one in enumerate(values)]
        rows += [[label if len(values) > 1 else label[:-2], one["__reference__"]["sha256"]] for label, one in numbered]
    return rows
