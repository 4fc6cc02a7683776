"""Register the deployments and automations of infra/prefect.yaml on a Prefect server, for one recipe."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL
from rich.console import Console

from infra.orchestration.automations import crash_zombies, install, pause_on_alarm
from infra.running.reachable import require_server
from infra.settings import settings
from schemas.errors import DreamGymError, InputError
from schemas.recipes.recipe import Recipe

ROOT = Path(__file__).parent.parent.parent
_PAUSED_BY_ALARM = "retrain/nightly"


def deploy(recipe: Recipe) -> dict[str, Any]:
    """Register everything, replacing earlier registrations; return the deployments, and the address of their page.

    Raises:
        InputError: no Prefect server is configured; deployments need a permanent one.
        DreamGymError: Prefect refused; the message quotes it.
    """
    url = PREFECT_API_URL.value()
    if not url:
        raise InputError("deployments need a Prefect server: `dreamgym up` starts one here, or set PREFECT_API_URL")
    require_server("Prefect", url, "/api/health")
    described = deployments_of(recipe)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "prefect.yaml"
        file.write_text(yaml.safe_dump(described))
        _prefect_deploy(file)
    with get_client(sync_client=True) as client:
        nightly = client.read_deployment_by_name(_PAUSED_BY_ALARM).id
    for automation in (crash_zombies(), pause_on_alarm(nightly)):
        install(automation)
    deployments = [
        {
            "name": one["name"],
            "schedules": [f"{each['cron']} {each['timezone']}" for each in one.get("schedules", ())],
            "events": [event for trigger in one.get("triggers", ()) for event in trigger["expect"]],
        }
        for one in described["deployments"]
    ]
    return {"deployments": deployments, "page": f"{url.removesuffix('/api')}/deployments"}


def print_deployments(registered: dict[str, Any]) -> None:
    """Print the result of `deploy`, and what to do next."""
    console = Console()
    for one in registered["deployments"]:
        events = f", on {', '.join(one['events'])}" if one["events"] else ""
        console.print(f"{one['name']:<12} {', '.join(one['schedules']) or 'by hand'}{events}", highlight=False)
    console.print(f"next    open {registered['page']}    or    prefect deployment run {_PAUSED_BY_ALARM}")


def deployments_of(recipe: Recipe) -> dict[str, Any]:
    """Return infra/prefect.yaml with this recipe instead of the default one, and the code at its local path."""
    described = yaml.safe_load((ROOT / "infra" / "prefect.yaml").read_text())
    described["pull"] = [{"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}]
    for one in described["deployments"]:
        for schedule in one.get("schedules", ()):
            schedule["timezone"] = settings().schedule_timezone
        if "recipe" in one["parameters"]:
            one["parameters"]["recipe"] = recipe.model_dump(mode="json")
    return described


def _prefect_deploy(file: Path) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise DreamGymError(f"prefect deploy failed: {(done.stderr or done.stdout).strip()[-800:]}")
