"""Message of a known error: one line, and an exit code."""

import pytest

from flows import command_line
from schemas.errors import DreamGymError, GateRefused, RecipeError, StorageError


@pytest.mark.parametrize(("kind", "code"), [(DreamGymError, 1), (StorageError, 1), (RecipeError, 2), (GateRefused, 3)])
def test_it_is_one_line_and_an_exit_code_however_much_a_server_said(kind, code, monkeypatch, capsys):
    def fail():
        raise kind("Prefect is unreachable: Server error '503'\nFor more information check: somewhere. Run again")

    monkeypatch.setattr(command_line, "app", fail)
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == code
    said = capsys.readouterr().err
    assert (
        said == "error: Prefect is unreachable: Server error '503' For more information check: somewhere. Run again\n"
    )
