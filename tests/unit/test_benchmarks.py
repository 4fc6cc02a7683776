"""The command that measures our rates beside those of common tools."""

import pytest

from tests.benchmarks import run


def test_a_module_without_rows_is_named_and_nothing_is_measured(capsys, monkeypatch):
    monkeypatch.setattr(run, "measure", lambda *_: pytest.fail("something was measured"))
    assert run.main(["round", "rounds"]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "no row is measured by rounds; rows are measured by episodes, retrieval, round" in said
