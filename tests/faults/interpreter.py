"""A toy cycle under another interpreter, in a path with spaces, as another user.

python -m tests.faults.interpreter python3.13                    makes an environment, runs a cycle, says what failed
python -m tests.faults.interpreter python3.12 --user nobody      as a user without rights (needs root)
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tests.command_line import TOY, changed

_HERE = Path(__file__).parents[2]


def main(
    python: Annotated[str, typer.Argument(help="Interpreter, by name or path.")],
    user: Annotated[str | None, typer.Option(help="User that runs everything; empty: the present one.")] = None,
) -> None:
    """Install this checkout's last commit with an interpreter, and run a toy cycle."""
    with tempfile.TemporaryDirectory(prefix="another interpreter ") as folder:
        checkout = Path(folder) / "a checkout"
        _run(["git", "clone", "--quiet", str(_HERE), str(checkout)], Path(folder))
        if user:
            _give(Path(folder), user)
        _run(["make", "--quiet", f"PYTHON={python}", ".venv/installed"], checkout, user)
        dreamgym = checkout / ".venv" / "bin" / "dreamgym"
        _run([str(dreamgym), "run", "textworld-tiny", *changed(*TOY)], checkout, user, accepted=(0, 3))
        _run([str(dreamgym), "doctor"], checkout, user)
    typer.echo(f"{python}: a cycle ran to its end in {checkout}")


def _give(folder: Path, user: str) -> None:
    """Make a user the owner of a folder and all that is in it."""
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, user)


def _run(command: Sequence[str], folder: Path, user: str | None = None, accepted: Sequence[int] = (0,)) -> None:
    """Run a command in a folder; end with its exit code unless that is accepted (3: the gate refused the toy)."""
    code = subprocess.run(command, cwd=folder, user=user, check=False).returncode
    if code not in accepted:
        raise typer.Exit(code)


if __name__ == "__main__":
    typer.run(main)
