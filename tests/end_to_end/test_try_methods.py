"""Comparison of methods in the real environment: a row is run once, and the table pools seeds by task."""

import json

import pytest

from flows import try_methods
from tests.command_line import TOY
from tests.fresh import use_home


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Use a folder of its own for rows."""
    monkeypatch.setattr(try_methods, "ROWS", tmp_path / "rows")
    (tmp_path / "rows").mkdir()
    return tmp_path / "rows"


def row(method: str, seed: int, before: list[float], after: list[float]) -> try_methods.Row:
    return try_methods.Row("kitchen", method, seed, [], "key", "commit", 1, 2560, 9000, 60.0 + seed, before, after)


def comparison(**fields) -> try_methods.Comparison:
    return try_methods.Comparison("textworld-tiny", "textworld-tiny", changes=[*TOY], methods=[], **fields)


def test_seeds_of_a_method_share_a_line_and_are_pooled_by_task():
    found = try_methods.markdown(
        [row("GRPO", 0, [0, 0, 1, 1], [1, 0, 1, 1]), row("GRPO", 1, [0, 1, 1, 1], [1, 1, 1, 1])]
    )
    assert found.splitlines()[2].startswith("| kitchen | real | GRPO | 0, 1 | 2,560 | 62.5 | 87.5 | +25.0 (")
    assert found.splitlines()[2].endswith("| 60 |")


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_a_row_is_run_once_and_again_only_if_the_recipe_differs(rows, tmp_path, monkeypatch):
    use_home(tmp_path / "home", monkeypatch)
    toy, changes = comparison(num_rounds=1), ["real.consolidate_every=1"]
    try_methods.run_row(toy, "consolidation, often", changes, 0)
    [path] = rows.glob("*.json")
    assert path.name == "textworld-tiny-consolidation-often-0.json"
    written = json.loads(path.read_text())
    assert len(written["before"]) == len(written["after"]) == 2
    assert written["num_episodes"] == 16
    assert written["num_steps"] > 0
    monkeypatch.setattr(try_methods, "trained_for_real", lambda *_: pytest.fail("it is there"))
    try_methods.run_row(toy, "consolidation, often", changes, 0)
    with pytest.raises(pytest.fail.Exception):
        try_methods.run_row(comparison(num_rounds=2), "consolidation, often", changes, 0)


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_a_row_may_be_of_a_policy_that_trained_in_the_dream(rows, tmp_path, monkeypatch):
    use_home(tmp_path / "home", monkeypatch)
    try_methods.run_row(comparison(num_rounds=1, origin="dream"), "GRPO", [], 0)
    written = json.loads((rows / "textworld-tiny-grpo-0.json").read_text())
    assert (written["origin"], written["num_rounds"]) == ("dream", 1)
    assert len(written["before"]) == len(written["after"]) > 0
    assert written["num_episodes"] > 0
    assert 0 <= written["outcome_agreement"] <= 1
    assert "| textworld-tiny | dream | GRPO |" in try_methods.markdown(try_methods.stored_rows())
