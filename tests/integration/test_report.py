"""Report of a run: it answers the main questions first, shows text as text, is small, and needs no network or script."""

import random
import re
from itertools import pairwise

import pytest

from flows.loop.lineage import Lineage
from infra.context import objects
from schemas.plain import plain
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask, Step, Trajectory, Turn
from schemas.runs import Artifacts
from tasks.judging.replayed_samples import replayed_samples
from tasks.judging.report import write_report
from tasks.running.artifacts import put_tasks, put_trajectories

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("in_a_cycle")]

THRESHOLDS = {"min_outcome_agreement": 0.9, "min_outcome_kappa": 0.4, "max_dream_real_gap": 0.1}
GAIN = {"mean": 0.4, "low": 0.3, "high": 0.5}


def episode(origin: str, number: int, length: int = 6) -> Trajectory:
    states = [f"place: {step}\nhostile: <script>alert({number})</script>" for step in range(length + 1)]
    turns = [
        Turn(states[step], f"go {step}", Step(states[step + 1], 0.0, False, False, "<b>reason</b>", ("shown",)))
        for step in range(length)
    ]
    return Trajectory(AgentTask(f"t/{number}", "find <i>it</i>", "test", "t"), origin, turns)


def evaluation(rate: float, length: int = 6) -> dict:
    successes = {
        f"{family}/{number}": float(number < 40 * rate) for family in ("cut", "<cook>") for number in range(40)
    }
    dreamt = [episode("dream", number, length) for number in range(6)]
    replays = [[turn.step for turn in one.turns] for one in dreamt]
    replays[0][1] = Step("elsewhere", 0.0, False, False)
    return {
        "successes": successes,
        "families": {task_id: task_id.split("/")[0] for task_id in successes},
        "samples": put_trajectories([episode("real", 9, length)]),
        "replayed_samples": put_trajectories(replayed_samples(dreamt, replays)),
        "outcome_agreement": 0.95,
        "outcome_kappa": 0.8,
        "outcome_kappa_high": 0.9,
        "state_agreement": 0.9,
        "dream_real_gap": -0.05,
        "one_step_reward_error": 0.01,
        "one_step_state_error": 0.05,
        "num_compared_steps": 1234.0,
        "effective_horizon": 10.0,
        "lemma1_bound": 9.1,
    }


def policy(rate: float, real_interactions: int = 0) -> dict:
    return {
        "real_success": rate,
        "interval": [rate - 0.1, rate + 0.05],
        "dream_success": rate - 0.05,
        "real_interactions": real_interactions,
        "num_tasks": 80,
    }


def gate(passed: bool) -> dict:
    family = {"num_tasks": 40, "baseline": 0.5, "candidate": 0.9, "gain": GAIN}
    return {
        "thresholds": THRESHOLDS,
        "passed": passed,
        "calibrated": True,
        "gain": GAIN,
        "families": {"cut": family, "<cook>": family},
        "unseen_families": ["cut"],
        "reasons": [] if passed else ["family cut lost 9.0%"],
        "judged_on": "fresh tasks",
        "champion": "",
        "over_champion": None,
    }


def made(length: int = 6) -> Lineage:
    draw = random.Random(0)
    tasks = [AgentTask(f"t/{number}", "cook", "train", "t", parent_id="x" * (number % 2)) for number in range(50)]
    lineage = Lineage(Artifacts(pool=put_tasks(tasks), logs=objects().put(b"logs", "logs")))
    lineage.evaluations = {"start": evaluation(0.5, length), "dream": evaluation(0.9, length)}
    lineage.rounds = [{"dream_success": draw.random(), "reward_entropy": 0.1, "groups_broken": 2} for _ in range(100)]
    measured = {"real_success": 0.5, "interval_low": 0.4, "interval_high": 0.6, "dream_real_gap": 0.1}
    agreement = {"outcome_agreement": 0.9, "state_agreement": 0.8}
    lineage.calibrations = [{"round": number, **measured, **agreement} for number in range(0, 100, 5)]
    lineage.curriculum = {"entropies": {task.task_id: draw.random() / 4 for task in tasks}}
    lineage.fidelity = {"state_exact": 0.93, "num_transitions": 449.0}
    return lineage


def record(lineage: Lineage, passed: bool = True) -> dict:
    steps = {"offline_interactions": 100, "calibration_interactions": 20, "evaluation_interactions": 30}
    costs = {"seconds": 877.6, "overhead_share": 0.03}
    return {
        "run_id": "kept",
        "recipe": {"name": "tiny<b>", "experience": {}, "dream": {"num_rounds": 20}},
        "recipe_digest": "f" * 64,
        "trigger": "by hand",
        "reasons": ["new logs"],
        "reached": "evaluate",
        "started_utc": "2026-01-02T03:04:05+00:00",
        "finished_utc": "2026-01-02T04:04:05+00:00",
        "key": {"settings": {"device": "cpu"}, "packages": {"torch": "2.8"}},
        "device": "A Processor",
        "left_behind": {"champion": None},
        "commit": "c0ffee" * 6,
        "results": {"start": policy(0.5), "dream": policy(0.9), **steps, **costs},
        "stage_seconds": {"ingest": 10.0, "dream": 600.0},
        "stage_tokens": {"dream": 1_000_000},
        "stage_failures": {"dream": {"context is full": 3}},
        "lineage": plain(lineage.artifacts.plain()),
        "gate": gate(passed),
        "promoted": "dream" if passed else "",
    }


def page(lineage: Lineage, passed: bool = True) -> str:
    recipe = Recipe.model_validate(
        {"name": "tiny", "description": "tiny<b>", "environment": {"name": "textworld-cooking"}}
    )
    return write_report(recipe, record(lineage, passed), lineage).read_text()


def test_the_report_answers_first_what_was_gained():
    text = page(made())
    order = [
        "Real success rose from 50.0% to 90.0% by training in the dream: +40.0 points (+30.0 to +50.0) on 80 test tasks",
        "By task family",
        "Can the dream be trusted?",
        "Share of dreamt episodes that end for real as they were dreamt.",
        'id="verdict"',
        "after dream training</b>: the champion now",
        'id="cost"',
        "14 min 38 s",
        "dreamgym export kept ./my-agent",
        "A Processor, torch 2.8",
        "c0ffee" * 6,
        'aria-label="Success by training round',
        "first disagreement",
    ]
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert re.search(r'data-label="after dream training">90.0% \(\d+\.\d to \d+\.\d%\)', text), (
        "each family has its interval"
    )


@pytest.mark.parametrize(
    ("bound", "meaning"),
    [(9.1, "The bound is vacuous"), (0.5, "The gap is within the bound"), (0.01, "The gap exceeds the bound")],
)
def test_the_measured_gap_stands_beside_the_bound_of_the_paper(bound, meaning):
    lineage = made()
    lineage.evaluations["dream"]["lemma1_bound"] = bound
    text = page(lineage)
    assert f"Dream and real success differ by 0.050. Lemma 1 of the paper bounds this by {bound:.3g}" in text
    assert "from errors of 1,234 single steps (reward 0.0100, next state 0.0500) and 10.0 steps an episode" in text
    assert meaning in text
    del lineage.evaluations["dream"]["lemma1_bound"]  # as in runs of earlier versions
    assert "Lemma 1" not in page(lineage)


def test_a_refusal_says_why_and_what_to_do():
    text = page(made(), passed=False)
    assert "<li>family cut lost 9.0%</li>" in text
    assert "dreamgym run tiny" in text
    assert "dreamgym export" not in text


@pytest.mark.parametrize("length", [6, 200])
def test_the_page_is_small_and_needs_nothing_from_elsewhere(length):
    text = page(made(length))
    assert len(text.encode()) < 300_000
    for foreign in ("<script", "http:", "https:", "<link", "@import", "url(//", "onclick"):
        assert foreign not in text
    assert "color-scheme: light dark" in text
    assert "@media (prefers-color-scheme: dark)" in text
    for hostile in ("<i>it</i>", "<b>reason</b>", "<cook>", "tiny<b>"):
        assert hostile not in text


def test_an_episode_of_long_states_is_shown_in_part():
    lineage = made()
    states = ["\n".join(f"{step}-{line} " * 400 for line in range(8)) for step in range(31)]
    turns = [Turn(before, "go", Step(after, 0.0, False, False, after)) for before, after in pairwise(states)]
    long = Trajectory(AgentTask("t/0", "go", "test", "t"), "dream", turns)
    lineage.evaluations["dream"]["replayed_samples"] = put_trajectories([long, long])
    text = page(lineage)
    assert len(text.encode()) < 300_000
    assert re.search(r"\d+ more steps", text)


def test_equal_runs_have_equal_pages():
    lineage = made()
    assert page(lineage) == page(lineage)


def test_a_run_that_stopped_early_has_a_page():
    lineage = Lineage(Artifacts(logs=objects().put(b"logs", "logs")))
    results = {name: value for name, value in record(lineage)["results"].items() if name not in ("start", "dream")}
    early = {**record(lineage), "gate": {}, "results": results, "promoted": "", "reached": "ingest"}
    recipe = Recipe.model_validate({"name": "tiny", "environment": {"name": "textworld-cooking"}})
    text = write_report(recipe, early, lineage).read_text()
    assert "Not judged yet: the run went as far as ingest." in text


def test_a_run_without_stored_replays_has_a_page():
    lineage = made()
    for one in lineage.evaluations.values():
        del one["replayed_samples"]
        one["samples"] = put_trajectories([episode("real", 1), episode("dream", 1)])
    assert "for real</b>" not in page(lineage)
