"""The command line application, with the arguments and options that commands share."""

import json
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="dreamgym",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

RecipeName = Annotated[str, typer.Argument(help="A shipped recipe by name, or a TOML file.", metavar="RECIPE")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="Change a field: section.field=value.", metavar="A.B=C")
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
RunName = Annotated[
    str | None,
    typer.Argument(help="A run's id, the start of one, @latest or @champion; empty: the latest.", metavar="RUN"),
]


def examples(*commands: str) -> str:
    """Return examples for the end of a command's help, a line each."""
    return "\n\n".join(("Examples:", *commands))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"dreamgym {version('dreamgym')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train agents inside a learnt experience model, prove the gain in the real environment."""


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    typer.echo(json.dumps(value, indent=1, default=str))


def embed_prefect_here() -> None:
    """Apply the settings of embedded Prefect, before Prefect is imported."""
    from infra.orchestration.embedded_prefect import embed_prefect

    embed_prefect()
