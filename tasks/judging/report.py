"""Report of a run: one self-contained HTML page, logged to MLflow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as plot
from plotly.offline import get_plotlyjs

from infra.context import objects, run_context
from infra.tracking.html_pages import write_page
from schemas.policies import POLICY_LABELS
from schemas.recipes.recipe import Recipe
from schemas.records import Reference, Trajectory
from tasks.running.artifacts import get_tasks, get_trajectories

_TEMPLATE = Path(__file__).with_name("report.html.jinja")
_INK, _REAL, _DREAM = "#1f2933", "#1b7f5c", "#8a5cc7"
_NUM_EPISODES = 6


def write_report(recipe: Recipe, summary: dict[str, Any], made: Any) -> Path:
    """Write the page to home and the object store, attach it to the MLflow run, and return its path in home.

    Args:
        recipe: Recipe of the run.
        summary: Summary that `show` prints.
        made: Lineage of the flow, with rounds, calibrations and references.
    """
    path = write_page(
        run_context().run_id,
        _TEMPLATE,
        recipe=recipe,
        summary=summary,
        results=summary["results"],
        fidelity=made.fidelity,
        gate=made.gate,
        policies=[(name, label) for name, label in POLICY_LABELS.items() if name in summary["results"]],
        figures=[(title, caption, _html(figure)) for title, caption, figure in _figures(summary, made)],
        episodes=_sample_episodes(made),
        plotly=get_plotlyjs(),
        run_id=run_context().run_id,
    )
    page = path.read_bytes()
    stored = objects().put(page, "report")
    run_context().tracker.cycle().log_text(page.decode(), path.name)
    run_context().tracker.cycle().set_tags({"lineage.report": stored.sha256[:16]})
    return path


def _html(figure: plot.Figure) -> str:
    figure.update_layout(
        template="plotly_white",
        height=340,
        margin={"l": 50, "r": 20, "t": 20, "b": 45},
        font={"color": _INK},
        legend={"orientation": "h", "y": 1.12},
    )
    return figure.to_html(full_html=False, include_plotlyjs=False, config={"responsive": True, "displayModeBar": False})


def _figures(summary: dict[str, Any], made: Any) -> list[tuple[str, str, plot.Figure]]:
    figures: list[tuple[str, str, plot.Figure]] = []
    if "start" in summary["results"]:
        caption = "Bars are 95% intervals over tasks. Dreamt success is what the experience model says."
        figures.append(("Held-out success", caption, _success_figure(summary["results"])))
    if made.rounds:
        caption = "Dream success of the training groups by round; real success on valid tasks where it was measured."
        figures.append(("Learning in the dream", caption, _learning_figure(made.rounds, made.calibrations)))
        caption = "Groups that all succeed or all fail teach nothing; the curriculum seeks those in between."
        figures.append(("Reward entropy and groups", caption, _curriculum_figure(made.rounds)))
    if made.calibrations:
        caption = "Agreement of dreamt outcomes and states with their real replay, and the gap of success rates."
        figures.append(("Calibration of the dream", caption, _calibration_figure(made.calibrations)))
    if "pool" in made.references and made.entropies:
        caption = "Latest reward entropy of each task that was tried; generated tasks are marked."
        figures.append(("Map of the curriculum", caption, _entropy_map(made.references["pool"], made.entropies)))
    return figures


def _success_figure(results: dict[str, Any]) -> plot.Figure:
    shown = [(label, results[name]) for name, label in POLICY_LABELS.items() if name in results]
    labels = [label for label, _ in shown]
    rates = [one["real_success"] for _, one in shown]
    figure = plot.Figure()
    figure.add_bar(
        x=labels,
        y=rates,
        name="real",
        marker_color=_REAL,
        error_y={
            "array": [one["interval"][1] - one["real_success"] for _, one in shown],
            "arrayminus": [one["real_success"] - one["interval"][0] for _, one in shown],
        },
    )
    figure.add_bar(x=labels, y=[one["dream_success"] for _, one in shown], name="dream", marker_color=_DREAM)
    return figure.update_yaxes(range=[0, 1.02], tickformat=".0%")


def _learning_figure(rounds: Sequence[dict[str, float]], calibrations: Sequence[dict[str, float]]) -> plot.Figure:
    figure = plot.Figure()
    numbers = list(range(1, len(rounds) + 1))
    figure.add_scatter(
        x=numbers, y=[r.get("dream_success") for r in rounds], name="dream, training groups", line={"color": _DREAM}
    )
    figure.add_scatter(
        x=[c["round"] for c in calibrations],
        y=[c["real_success"] for c in calibrations],
        name="real, valid tasks",
        mode="lines+markers",
        line={"color": _REAL},
        error_y={
            "array": [c["interval_high"] - c["real_success"] for c in calibrations],
            "arrayminus": [c["real_success"] - c["interval_low"] for c in calibrations],
        },
    )
    return figure.update_yaxes(range=[0, 1.02], tickformat=".0%").update_xaxes(title="round")


def _curriculum_figure(rounds: Sequence[dict[str, float]]) -> plot.Figure:
    figure = plot.Figure()
    numbers = list(range(1, len(rounds) + 1))
    for key, label, colour in (
        ("groups_all_succeeded", "all succeed", _REAL),
        ("groups_all_failed", "all fail", "#c0392b"),
        ("groups_broken", "broken", "#7b8794"),
    ):
        figure.add_bar(x=numbers, y=[r.get(key, 0) for r in rounds], name=label, marker_color=colour)
    figure.add_scatter(
        x=numbers, y=[r["reward_entropy"] for r in rounds], name="mean reward entropy", yaxis="y2", line={"color": _INK}
    )
    figure.update_layout(
        barmode="stack",
        yaxis2={"overlaying": "y", "side": "right", "rangemode": "tozero", "showgrid": False, "tickformat": ".2f"},
    )
    return figure.update_xaxes(title="round")


def _calibration_figure(calibrations: Sequence[dict[str, float]]) -> plot.Figure:
    figure = plot.Figure()
    rounds = [c["round"] for c in calibrations]
    for key, label in (
        ("outcome_agreement", "outcomes agree"),
        ("state_agreement", "states agree"),
        ("dream_real_gap", "dream minus real success"),
    ):
        figure.add_scatter(x=rounds, y=[c[key] for c in calibrations], name=label, mode="lines+markers")
    return figure.update_yaxes(tickformat=".0%").update_xaxes(title="round")


def _entropy_map(pool: Reference, entropies: dict[str, float]) -> plot.Figure:
    tasks = [task for task in get_tasks(pool) if task.task_id in entropies]
    order = sorted(tasks, key=lambda task: (task.family, entropies[task.task_id]))
    figure = plot.Figure()
    for generated, label, colour in ((False, "environment's own", _REAL), (True, "generated", _DREAM)):
        chosen = [(i, task) for i, task in enumerate(order) if task.generated is generated]
        figure.add_scatter(
            x=[i for i, _ in chosen],
            y=[entropies[task.task_id] for _, task in chosen],
            mode="markers",
            name=label,
            marker={"color": colour},
            text=[_escaped(f"{task.family}: {task.instruction}") for _, task in chosen],
        )
    return figure.update_yaxes(rangemode="tozero").update_xaxes(title="task", showticklabels=False)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _sample_episodes(made: Any) -> list[Trajectory]:
    """Return some successes and some failures of the candidate, real and dreamt."""
    evaluation = made.evaluations.get("dream")
    if evaluation is None:
        return []
    episodes = get_trajectories(evaluation["samples"])
    chosen: list[Trajectory] = []
    for origin in ("dream", "real"):
        own = [t for t in episodes if t.origin == origin]
        failures = [t for t in own if not t.success][: _NUM_EPISODES // 3]
        chosen += failures + [t for t in own if t.success][: _NUM_EPISODES // 2 - len(failures)]
    return chosen
