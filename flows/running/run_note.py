"""Note of a run in MLflow: its outcome in a few lines of Markdown."""

from flows.reports.show_run import with_interval
from infra.pages.wording import percent
from schemas.policies import POLICY_LABELS
from schemas.runs import Record


def note_of(record: Record) -> str:
    """Return why the run was started, its results, the verdict, and the path of the report."""
    results = record["results"]
    rows = [
        f"| {label} | {one['real_success']:.1%} | {_interval(one['interval'])} | {percent(one['dream_success'])} |"
        for name, label in POLICY_LABELS.items()
        if (one := results.get(name))
    ]
    table = ["| policy | real | 95% interval | dream |", "|---|---|---|---|", *rows] if rows else []
    lines = [f"**{record['run_id']}**: {record['trigger']}, {'; '.join(record['reasons'])}", "", *table]
    return "\n".join([*lines, "", *_verdict(record), f"Report: `{record.get('report', '')}`"])


def _verdict(record: Record) -> list[str]:
    gate, unproven = record["gate"], record.get("unproven")
    if unproven:
        return [f"Not promoted: {'; '.join(unproven['reasons'])}", ""]
    if not gate:
        return []
    verdict = "passed" if gate["passed"] else f"refused: {'; '.join(gate['reasons'])}"
    promoted = f"; {record['promoted'].replace('_', '-')} promoted" if record["promoted"] else ""
    return [f"Gate {verdict}, real gain {with_interval(gate['gain'])}{promoted}", ""]


def _interval(bounds: list[float]) -> str:
    low, high = bounds
    return f"{low:.1%} to {high:.1%}"
