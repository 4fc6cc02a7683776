"""The server stack, really up: healthy, closed to strangers, and a deployed cycle runs on it."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import boto3
import httpx
import psycopg
import pytest
from botocore.exceptions import ClientError

from infra.stack.layout import USER, Layout
from tests.integration.stack_home import free_ports, missing_servers, stack_home

pytestmark = [pytest.mark.integration, pytest.mark.skipif(bool(missing_servers()), reason=missing_servers())]

COMMAND = Path(sys.executable).with_name("dreamgym")
TOY = [
    "environment.num_train_tasks=20",
    "environment.num_valid_tasks=4",
    "environment.num_test_tasks=8",
    "experience.num_refit_episodes=8",
    "dream.num_rounds=1",
    "grpo.groups_per_round=2",
]


def dreamgym(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    told = {**os.environ, "DREAMGYM_HOME": str(home), "DREAMGYM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run([COMMAND, *arguments], env=told, capture_output=True, text=True, timeout=600, check=False)


def toy() -> list[str]:
    return [part for change in TOY for part in ("--set", change)]


@pytest.fixture(scope="module")
def layout():
    with stack_home() as home:
        ports = [part for name, port in free_ports().items() for part in (f"--{name}-port", str(port))]
        started = dreamgym(home, "up", *ports)
        assert started.returncode == 0, started.stderr
        yield Layout.of(home)
        stopped = dreamgym(home, "down")
        assert "stopped" in stopped.stdout
        assert "nothing runs" in dreamgym(home, "down").stdout


def test_a_second_up_finds_it_running_and_says_where(layout):
    again = dreamgym(layout.home, "up")
    assert again.returncode == 0, again.stderr
    assert layout.prefect_url in again.stdout
    assert layout.mlflow_url in again.stdout


def test_a_stack_that_runs_cannot_be_moved(layout):
    refused = dreamgym(layout.home, "up", "--mlflow-port", str(layout.ports.mlflow + 1))
    assert refused.returncode == 2
    assert "dreamgym down" in refused.stderr
    assert Layout.of(layout.home).ports == layout.ports


def test_ui_points_to_the_pages_that_are_there(layout):
    refused = dreamgym(layout.home, "ui")
    assert refused.returncode == 2
    assert layout.mlflow_url in refused.stderr
    assert layout.prefect_url in refused.stderr


def test_the_doctor_finds_it_well(layout):
    examined = json.loads(dreamgym(layout.home, "doctor", "--json").stdout)
    assert [one for one in examined if not one["fine"]] == []
    told = {one["what"]: one["detail"] for one in examined}
    assert "clocks agree" in told["Prefect"]
    assert "clocks agree" in told["MLflow"]


def test_strangers_are_kept_out(layout):
    assert httpx.get(f"{layout.prefect_url}/api/version").status_code == 401
    assert httpx.get(f"{layout.prefect_url}/api/version", auth=(USER, layout.passwords["prefect"])).status_code == 200
    search = f"{layout.mlflow_url}/api/2.0/mlflow/experiments/get-by-name?experiment_name=Default"
    assert httpx.get(search).status_code == 401
    assert httpx.get(search, auth=("admin", "password1234")).status_code == 401
    friend = (USER, layout.passwords["mlflow"])
    assert httpx.get(search, auth=friend).status_code == 200
    assert httpx.get(search, auth=friend, headers={"Host": "evil.example"}).status_code == 403
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(host="127.0.0.1", port=layout.ports.postgres, user=USER, password="guess", dbname="postgres")
    forger = boto3.client(
        "s3", endpoint_url=layout.s3_url, aws_access_key_id=USER, aws_secret_access_key="guess", region_name="us-east-1"
    )
    with pytest.raises(ClientError, match=r"403|SignatureDoesNotMatch"):
        forger.list_buckets()


def test_all_of_it_listens_on_loopback_only(layout):
    lines = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True, check=True).stdout.splitlines()
    ports = {str(port) for port in (layout.ports.prefect, layout.ports.mlflow, layout.ports.s3, layout.ports.postgres)}
    heard = [line.split()[3].rsplit(":", 1) for line in lines]
    assert {host for host, port in heard if port in ports} == {"127.0.0.1"}
    assert ports <= {port for _, port in heard}


def test_a_deployed_cycle_runs_on_a_worker_and_its_results_are_shared(layout):
    deployed = dreamgym(layout.home, "deploy", "textworld-tiny", *toy())
    assert deployed.returncode == 0, deployed.stderr
    told = {**os.environ, **layout.client_environment()}
    schema = httpx.get(
        f"{layout.prefect_url}/api/deployments/name/retrain/nightly", auth=(USER, layout.passwords["prefect"])
    ).json()["parameter_openapi_schema"]
    assert "GrpoRecipe" in schema["definitions"], "recipes appear as a typed form"
    run = [
        sys.executable,
        "-m",
        "prefect",
        "deployment",
        "run",
        "retrain/nightly",
        "--param",
        "until=ingest",
        "--watch",
    ]
    done = subprocess.run(run, env=told, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = json.loads(dreamgym(layout.home, "show", "--json").stdout)
    assert shown["lineage"]["logs"]["__reference__"]["uri"].startswith("s3://dreamgym/objects/")
    local = dreamgym(layout.home, "run", "textworld-tiny", *toy(), "--only", "ingest", "--json")
    assert json.loads(local.stdout)["lineage"] == shown["lineage"], "the worker's result was taken over"


def test_passwords_are_private_and_in_no_log(layout):
    for name in ("environment", "passwords.json", "supervisor.conf", "mlflow/auth.ini"):
        assert stat.S_IMODE((layout.folder / name).stat().st_mode) == 0o600, name
    logs = "".join(path.read_text(errors="replace") for path in layout.logs.iterdir())
    assert not [name for name, password in layout.passwords.items() if password in logs]
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not [name for name, password in layout.passwords.items() if password in commands]


def test_a_server_that_dies_comes_back(layout):
    pid = subprocess.run(
        ["pgrep", "-f", f"mlflow server.*{layout.ports.mlflow}"], capture_output=True, text=True, check=True
    ).stdout.split()[0]
    os.kill(int(pid), 9)
    assert dreamgym(layout.home, "up").returncode == 0
    assert httpx.get(f"{layout.mlflow_url}/health").status_code == 200
