"""Entry point of the command line. Arguments are parsed before any heavy import, so `--help` answers at once.

Exit codes: 0 done, 1 failed, 2 bad recipe or input, 3 evaluated but refused by the gate.
"""

import sys

import typer

from flows.commands import judging, logs, promoting, results, running, serving
from flows.commands.application import app
from infra.surroundings import read_text_as_utf8, settle
from schemas.errors import DreamGymError

COMMANDS = (running, logs, results, judging, promoting, serving)
"""Modules that register their commands with the application, in the order of the help."""
_INTERRUPTED = 130
"""Exit code that typer uses for Ctrl-C."""


def main() -> None:
    """Run the command line; print known errors as one line and exit with their code."""
    read_text_as_utf8()
    try:
        settle()
        app()
    except DreamGymError as error:
        typer.echo(f"error: {' '.join(str(error).splitlines())}", err=True)
        sys.exit(error.exit_code)
    except SystemExit as end:
        if end.code != _INTERRUPTED:
            raise
        typer.echo("interrupted; run the same command again to go on from the last finished step", err=True)
        sys.exit(1)
    except OSError as error:
        typer.echo(
            f"error: {error.strerror or error}: {error.filename or 'unknown file'}. Free space or fix permissions, then run again",
            err=True,
        )
        sys.exit(1)
