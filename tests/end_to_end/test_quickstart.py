"""The quickstart notebook: its cells run in order, within a running event loop as in Jupyter."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import flows
from tests.command_line import python_here

NOTEBOOK = json.loads((Path(flows.__file__).parent / "quickstart.ipynb").read_text())
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


async def executed() -> dict[str, Any]:
    """Run the cells as a kernel does, and return the names that they define."""
    namespace: dict[str, Any] = {}
    for number, cell in enumerate(CODE):
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), namespace)
    return namespace


def test_the_notebook_has_no_outputs():
    assert NOTEBOOK["nbformat"] == 4
    assert [cell["outputs"] for cell in CODE] == [[]] * len(CODE)
    assert {cell["execution_count"] for cell in CODE} == {None}


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_its_cells_run_a_recipe_and_play_an_episode(tmp_path, capsys):
    with python_here(tmp_path):
        made = asyncio.run(executed())
    run, table, dream, real = (made[name] for name in ("run", "table", "dream", "real"))
    assert run.record["reached"] == "evaluate"
    assert run.report.is_relative_to(tmp_path)
    assert run.report.is_file()
    assert list(table.columns) == ["start", "dream"]
    assert 0 <= table.loc["real_success", "dream"] <= 1
    assert dream.done
    assert real.task.task_id == dream.task.task_id
    said = capsys.readouterr().out
    assert all(f"{number}. {action}" in said for number, (_, action) in enumerate(made["turns"], 1))
