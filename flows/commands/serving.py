"""Commands for servers, schedules and the state of a home."""

from dataclasses import asdict
from typing import Annotated

import typer

from flows.commands.application import AsJson, Changes, RecipeName, app, embed_prefect_here, examples, print_json
from schemas.errors import InputError


@app.command()
def ui(
    mlflow_port: Annotated[int, typer.Option(help="Port of the MLflow page.")] = 5000,
    prefect_port: Annotated[int, typer.Option(help="Port of the Prefect page.")] = 4200,
    as_json: AsJson = False,
) -> None:
    """Serve the MLflow and Prefect pages for this home's stores, on loopback, until Ctrl-C."""
    embed_prefect_here()
    from flows.services.ui import print_pages, serve_ui

    serve_ui(mlflow_port, prefect_port, print_json if as_json else print_pages)


@app.command(epilog=examples("dreamgym serve @latest --port 9000", "dreamgym serve --policy champion"))
def serve(
    name: Annotated[
        str | None,
        typer.Argument(
            help="An experience model or a run, by the start of digest or id; empty: the latest.",
            metavar="MODEL_OR_RUN",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Serve the policy of a run instead, by OpenAI's chat completions.", metavar="RUN|champion"),
    ] = None,
    host: Annotated[str, typer.Option(help="Others than loopback need a token in DREAMGYM_SERVE_TOKEN.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Of the server.", min=1, max=65_535)] = 8_000,
    max_sessions: Annotated[int, typer.Option(help="How many may play at a time.", min=1)] = 128,
    as_json: AsJson = False,
) -> None:
    """Serve an experience model as an environment that others train in (OpenEnv), or a policy, until Ctrl-C."""
    from flows.planning.check_serving import find_dream, require_place

    if policy and name:
        raise InputError("serve an experience model or a policy, not both: leave out MODEL_OR_RUN or --policy")
    require_place(host, port)
    if policy:
        _serve_policy(policy, host, port, as_json=as_json)
        return
    summary = find_dream(name)
    embed_prefect_here()
    from flows.services.serve_experience_model import serve as serve_dream

    serve_dream(summary, host, port, max_sessions, print_json if as_json else None)


def _serve_policy(policy: str, host: str, port: int, *, as_json: bool) -> None:
    from flows.runs.find_policy import find_policy

    found = find_policy(policy)
    embed_prefect_here()
    from flows.services.serve_policy import serve_policy

    serve_policy(found, host, port, print_json if as_json else None)


@app.command()
def up(
    prefect_port: Annotated[int | None, typer.Option(help="Of the Prefect page and API; 4200 at first.")] = None,
    mlflow_port: Annotated[int | None, typer.Option(help="Of the MLflow page and API; 5000 at first.")] = None,
    s3_port: Annotated[int | None, typer.Option(help="Of the object server, which uses the 40 above, too.")] = None,
    postgres_port: Annotated[int | None, typer.Option(help="Of PostgreSQL; 5433 at first.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start this home's servers, on loopback: PostgreSQL, S3-compatible objects, Prefect, MLflow, a worker."""
    from flows.services.servers import print_addresses, start_servers

    addresses = start_servers(prefect=prefect_port, mlflow=mlflow_port, s3=s3_port, postgres=postgres_port)
    print_json(addresses) if as_json else print_addresses(addresses)


@app.command()
def down(as_json: AsJson = False) -> None:
    """Stop the servers that `up` started; stored data stays."""
    from flows.services.servers import stop_servers

    stopped = stop_servers()
    if as_json:
        print_json({"stopped": stopped})
    else:
        typer.echo("stopped; stored data is kept, and `dreamgym up` uses it again" if stopped else "nothing runs")


@app.command(epilog=examples("dreamgym deploy textworld-tiny --set seed=1"))
def deploy(recipe: RecipeName, changes: Changes = None, as_json: AsJson = False) -> None:
    """Register the nightly run and its companion deployments for a recipe on the Prefect server."""
    from flows.planning.load_recipe import load_recipe

    loaded = load_recipe(recipe, changes or [])
    embed_prefect_here()
    from flows.planning.require_methods import require_methods
    from flows.services.deploy import deploy as register
    from flows.services.deploy import print_deployments

    require_methods(loaded)
    registered = register(loaded)
    print_json(registered) if as_json else print_deployments(registered)


@app.command(epilog=examples("dreamgym maintain --keep-days 7"))
def maintain(
    keep_days: Annotated[
        int, typer.Option(help="Age up to which results and unpinned table versions stay.", min=1)
    ] = 30,
    as_json: AsJson = False,
) -> None:
    """Compact tables; remove old versions and results, and objects that no run, champion or result refers to."""
    from flows.services.maintenance import in_words, tidy_up

    removed = tidy_up(keep_days)
    print_json(asdict(removed)) if as_json else typer.echo(in_words(removed, keep_days))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Check whether recipes can run here: versions, disk, stores, servers, clocks and secrets."""
    from flows.services.doctor import examine, print_findings

    examined = examine()
    print_json(examined) if as_json else print_findings(examined)
    if not all(one["fine"] for one in examined):
        raise typer.Exit(1)
