"""Comparison of runs: it shows only what differs, is paired on the tasks they share, and is safe to open."""

import pytest

from flows.reports.compare_nights import nights, page_of_nights
from flows.reports.compare_runs import comparison, page_of, rows_of
from infra.context import objects
from tests.stored_runs import finished_run

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("home")]


def cycle(name: str, rate: float, model: str, successes: dict[str, bool]) -> dict:
    kept = objects().put_json({"dream": successes}, "successes")
    reference = {"uri": kept.uri, "sha256": kept.sha256, "kind": kept.kind, "notes": {}}
    return {
        "run_id": name,
        "recipe": {"name": "r", "rl": {"learning_rate": rate, "group_size": 8}},
        "results": {
            "dream": {"real_success": sum(successes.values()) / len(successes), "interval": [0.0, 1.0]},
            "seconds": 61.5,
            "offline_interactions": 1234,
        },
        "lineage": {
            "measured": {"__reference__": {"sha256": name * 64}},
            "logs": {"__reference__": {"sha256": "a" * 64}},
            "dream": {"__reference__": {"sha256": model * 64}},
            "successes": {"__reference__": reference},
        },
        "stage_tokens": {"dream": 1000, "train dream": 500},
    }


A = {"t1": True, "t2": False, "t3": False, "t4": False}


def test_only_what_differs_is_told_and_differences_are_paired():
    better = {"t2": True, "t3": True, "t4": False, "t9": False}
    table = comparison([cycle("a", 0.1, "c", A), cycle("b", 0.2, "d", better), cycle("c", 0.1, "c", {"x": True})])
    assert table["recipe_differences"] == {"rl.learning_rate": [0.1, 0.2, 0.1]}
    assert table["data_differences"] == {"dream": ["c" * 12, "d" * 12, "c" * 12]}
    ours, none = table["paired_differences"]["dream"]
    # on t2, t3 and t4: +1, +1 and 0
    assert (ours["mean"], ours["num_tasks"]) == (pytest.approx(2 / 3), 3)
    assert none is None
    joined = table["differences"]["dream"][1]
    assert (joined["mean"], joined["paired"]) == (0.75, False)
    rows = dict(rows_of(table)["Real success on held-out tasks"])
    assert rows["after dream training"][0] == "25.0% (0.0 to 100.0)"
    assert rows["  difference, after dream training"][1] == "+66.7 points (-76.8 to +100.0) on 3 tasks"
    assert rows["  difference, after dream training"][2].endswith("on different tasks")
    assert dict(rows_of(table)["Measures and cost"])["tokens"] == ["1,500"] * 3


def test_equal_cycles_differ_in_nothing(home):
    table = comparison([cycle("a", 0.1, "c", A), cycle("b", 0.1, "c", A)])
    assert table["recipe_differences"] == table["data_differences"] == {}
    assert table["paired_differences"]["dream"][0]["mean"] == 0
    assert rows_of(table)["Recipes: what differs"] == [("nothing", [])]


def test_the_page_shows_text_as_text(home):
    page = page_of(comparison([cycle("a<script>", 0.1, "c", A), cycle("b", 0.2, "c", A)])).read_text()
    assert "a&lt;script&gt;" in page
    assert "<script" not in page
    assert "http" not in page
    assert len(page) < 300_000
    assert "prefers-color-scheme: dark" in page


def test_the_page_begins_with_the_verdict(home):
    table = comparison([cycle("a", 0.1, "c", A), cycle("b", 0.2, "c", A)])
    page = page_of(table).read_text()
    assert table["verdicts"] == [
        "No difference between b and a is shown: +0.0 points (+0.0 to +0.0) on 4 tasks (after dream training); it cost 1.0x "
        "the time."
    ]
    assert page.index(table["verdicts"][0]) < page.index("<svg") < page.index("what differs")
    assert '<td data-label="b">0.2</td>' in page


def night(number: int, promoted: str) -> dict:
    policy = {"real_success": 0.8 + number / 1000, "interval": [0.7, 0.95]}
    return {
        "run_id": f"night-{number}<b>",
        "started_utc": f"2026-01-{1 + number % 28:02}T03:04:05+00:00",
        "policies": dict.fromkeys(("start", "dream", "champion", "sim_to_real"), policy),
        "verdict": "champion" if promoted else "refused: family cut lost 9.0%",
        "promoted": promoted,
        "seconds": 600.0,
        "tokens": 7_000_000,
        "real_steps": 3000,
        "episodes": 800 + number,
        "new_episodes": 1,
        "reasons": ["new logs"],
    }


def test_the_page_of_nights_is_small_and_says_who_became_champion(home):
    page = page_of_nights([night(number, "dream" if number in (3, 7) else "") for number in range(60)]).read_text()
    assert "2 new champions, the last from night-7&lt;b&gt; with 80.7%." in page
    assert "new champion in run 4, 8 (star)" in page
    assert "refused: family cut lost 9.0%" in page
    assert page.count("<svg") == 8, "one per policy, cost and data; no chart has two scales"
    assert len(page) < 300_000
    for foreign in ("<script", "http", "<b>\n"):
        assert foreign not in page
    assert "prefers-color-scheme: dark" in page


def test_new_episodes_are_those_since_the_last_run_of_the_same_recipe():
    for run_id, recipe, num_episodes in (("a-1", "a", 10), ("b-1", "b", 500), ("a-2", "a", 14), ("b-2", "b", 500)):
        stored = {"uri": "", "sha256": "c" * 64, "kind": "trajectories", "notes": {"num_episodes": num_episodes}}
        logs = {"__reference__": stored}
        finished_run(
            run_id,
            recipe={"name": recipe, "seed": 0},
            results={"seconds": 1.0},
            lineage={"logs": logs},
            stage_tokens={},
            gate={},
        )
    assert [one["new_episodes"] for one in nights(4)] == [10, 500, 4, 0]
    assert [one["new_episodes"] for one in nights(2)] == [4, 0]
