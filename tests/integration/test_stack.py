"""Real server stack: healthy, closed to strangers, and able to run a deployed recipe."""

import json
import os
import stat
import subprocess
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import boto3
import httpx
import psutil
import psycopg
import pytest
from botocore.exceptions import ClientError

from infra.stack import object_server
from infra.stack.layout import BUCKET, USER, Layout
from infra.stack.postgres import binaries
from infra.storage.blobs import open_blobs, require_conditional_puts
from tests.command_line import LENIENT_GATE, TOY, changed, dreamgym, dreamgym_here
from tests.faults.calm import settings_of
from tests.integration.stack_home import ask_prefect, running_stack

pytestmark = pytest.mark.integration


UNFINISHED = ("SCHEDULED", "PENDING", "RUNNING")
PRIVATE = ("environment", "passwords.json", "supervisor.conf", "mlflow/auth.ini", "s3/users.json", "s3/security.toml")
INFRA = Path(__file__).parents[2] / "infra"
BEHIND = (
    "GET /dir/assign",
    f"GET /buckets/{BUCKET}/",
    f"DELETE /buckets/{BUCKET}?recursive=true",
    f"GET /col/delete?collection={BUCKET}",
    "GET /1,01f2867d78",
    "POST /1,01f2867d78",
    "DELETE /1,01f2867d78",
)
"""Requests that servers behind the gateway would answer if anyone could reach them."""
CANARY = "a-key-that-nobody-may-see"


@pytest.fixture(scope="module")
def layout():
    with running_stack(DREAMGYM_ENDPOINT_API_KEY=CANARY) as layout:
        yield layout
        stopped = dreamgym_here(layout.home, "down")
        assert "stopped" in stopped.stdout
        assert "nothing runs" in dreamgym_here(layout.home, "down").stdout


def test_a_second_up_finds_it_running_and_says_where(layout):
    again = dreamgym_here(layout.home, "up")
    assert again.returncode == 0, again.stderr
    assert layout.prefect_url in again.stdout
    assert layout.mlflow_url in again.stdout


def test_a_stack_that_runs_cannot_be_moved(layout):
    refused = dreamgym_here(layout.home, "up", "--mlflow-port", str(layout.ports.mlflow + 1))
    assert refused.returncode == 2
    assert "dreamgym down" in refused.stderr
    assert Layout.of(layout.home).ports == layout.ports


def test_ui_points_to_the_pages_that_are_there(layout):
    refused = dreamgym_here(layout.home, "ui")
    assert refused.returncode == 2
    assert layout.mlflow_url in refused.stderr
    assert layout.prefect_url in refused.stderr


def test_the_doctor_finds_it_well(layout):
    examined = json.loads(dreamgym_here(layout.home, "doctor", "--json").stdout)
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


def test_nobody_gets_round_the_gateway(layout):
    """Servers behind it reveal and do nothing for a client without a part in their keys."""
    refusals = {said for port in object_server.ports(layout)[1:] for said in map(partial(answer_of, port), BEHIND)}
    assert refusals <= {"not HTTP", 400, 401, 404}


def answer_of(port: int, request: str) -> int | str:
    method, path = request.split()
    try:
        return httpx.request(method, f"http://127.0.0.1:{port}{path}", verify=False).status_code
    except httpx.TransportError:
        return "not HTTP"


def test_its_store_creates_a_key_once_and_takes_what_is_sent_in_parts(layout):
    blobs, large = open_blobs(settings_of(layout)), os.urandom(257 * 2**20)
    require_conditional_puts(blobs, num_races=5)
    blobs.write("large", large)
    assert blobs.read("large") == large
    blobs.delete("large")
    assert not blobs.holds("large")


def test_what_was_stored_outlives_a_killed_server_and_a_stop(layout):
    blobs = open_blobs(settings_of(layout))
    written = {f"outlives/{number}": os.urandom(10_000 * number) for number in range(1, 20)}
    for key, content in written.items():
        blobs.write(key, content)
    servers = [one for one in psutil.process_iter(["name", "cmdline"]) if one.info["name"] in ("weed", "postgres")]
    killed = [one for one in servers if str(layout.folder) in " ".join(one.info["cmdline"] or ())]
    assert len(killed) == 2
    for one in killed:
        one.kill()
    assert dreamgym_here(layout.home, "down").returncode == 0
    assert dreamgym_here(layout.home, "up").returncode == 0
    assert {key: blobs.read(key) for key in blobs.keys("outlives/")} == written


def test_all_of_it_listens_on_loopback_only(layout):
    ours = psutil.Process(int((layout.folder / "supervisor.pid").read_text())).children(recursive=True)
    heard = {one.laddr for process in ours for one in process.net_connections() if one.status == psutil.CONN_LISTEN}
    assert {address.ip for address in heard} == {"127.0.0.1"}
    assert {*asdict(layout.ports).values(), *object_server.ports(layout)} <= {address.port for address in heard}


@pytest.fixture(scope="module")
def deployed(layout):
    needs_approval = changed(*TOY, *LENIENT_GATE, "gate.needs_approval=true")
    done = dreamgym(layout.home, "deploy", "textworld-tiny", *needs_approval)
    assert done.returncode == 0, done.stderr
    return layout


def test_the_server_takes_the_template_of_kubernetes_jobs(layout):
    template = json.loads((INFRA / "kubernetes" / "job-template.json").read_text())
    made = ask_prefect(layout, "POST", "work_pools/", name="jobs", type="kubernetes", base_job_template=template)
    assert made["type"] == "kubernetes"
    ask_prefect(layout, "DELETE", "work_pools/jobs")


def nightly(layout) -> dict:
    return ask_prefect(layout, "GET", "deployments/name/retrain/nightly")


def test_recipes_appear_as_a_typed_form(deployed):
    assert "RlRecipe" in nightly(deployed)["parameter_openapi_schema"]["definitions"]


def test_a_deployed_cycle_waits_for_a_persons_word_and_is_promoted_in_their_name(deployed):
    started = ask_prefect(deployed, "POST", f"deployments/{nightly(deployed)['id']}/create_flow_run")
    run = f"flow_runs/{started['id']}"
    assert state_after(deployed, run, *UNFINISHED)["name"] == "Suspended"
    assert [one["decision"] for one in history(deployed)] == ["judged"], "nobody was promoted yet"
    assert "approve" in refused(deployed, run, approve="perhaps", name="ann")
    ask_prefect(deployed, "POST", f"{run}/resume", run_input={"approve": True, "name": "ann"})
    assert state_after(deployed, run, "PAUSED", *UNFINISHED)["type"] == "COMPLETED"
    assert [(one["decision"], one["by"]) for one in history(deployed)[1:]] == [("promoted", "ann")]
    assert state_after(deployed, set_off(deployed, "sim-to-real"), *UNFINISHED)["type"] == "COMPLETED"


def set_off(layout, deployment: str) -> str:
    """Return the path of the flow run that an event started."""
    while True:
        if found := ask_prefect(layout, "POST", "flow_runs/filter", deployments={"name": {"any_": [deployment]}}):
            return f"flow_runs/{found[0]['id']}"
        time.sleep(0.5)


def refused(layout, run: str, **answer) -> str:
    """Return why Prefect rejects an answer; its form is there a moment after the run was suspended."""
    while True:
        said = ask_prefect(layout, "POST", f"{run}/resume", run_input=answer)
        assert said["status"] == "REJECT"
        if "schema not found" not in said["details"]["reason"]:
            return said["details"]["reason"]
        time.sleep(0.5)


def state_after(layout, run: str, *passing: str) -> dict:
    """Return the state of a flow run once it has left these states."""
    while True:
        state = ask_prefect(layout, "GET", run)["state"]
        if state["type"] not in passing:
            return state
        time.sleep(1)


def history(layout) -> list[dict]:
    return json.loads(dreamgym_here(layout.home, "history", "--json").stdout)


def test_what_a_worker_made_is_taken_over_here(deployed):
    shown = json.loads(dreamgym_here(deployed.home, "show", "--json").stdout)
    assert shown["lineage"]["logs"]["__reference__"]["uri"].startswith("s3://dreamgym/objects/")
    again = changed(*TOY, *LENIENT_GATE, "gate.needs_approval=true")
    local = dreamgym(deployed.home, "run", "textworld-tiny", *again, "--only", "evaluate", "--json")
    mine = json.loads(local.stdout)["lineage"]
    same = mine.keys() - {"successes"}  # sim-to-real has added its own meanwhile
    assert {name: mine[name] for name in same} == {name: shown["lineage"][name] for name in same}


def test_passwords_are_in_private_files_only(deployed):
    """After all tests above, no password is in logs, databases, objects, the home or commands."""
    assert all(is_private(deployed.folder / name, deployed.home) for name in PRIVATE)
    places = {
        "commands": str([one.info["cmdline"] for one in psutil.process_iter(["cmdline"])]).encode(),
        **{f"database {name}": dumped(deployed, name) for name in ("prefect", "mlflow")},
        **objects_of(deployed),
        **{str(path): path.read_bytes() for path in files_of(deployed)},
    }
    assert len(places) > 100
    assert any(b"textworld-tiny" in content for content in places.values()), "it would find something"
    found = [
        (name, place)
        for place, content in places.items()
        for name, password in (*deployed.passwords.items(), ("endpoint", CANARY))
        if password.encode() in content
    ]
    assert found == []


def test_what_fails_says_no_password(deployed):
    told = {"DREAMGYM_S3_ENDPOINT": "http://127.0.0.1:9", "DREAMGYM_TRACKING_URI": f"http://me:{CANARY}@127.0.0.1:9"}
    for name, value in told.items():
        failed = dreamgym_here(deployed.home, "run", "textworld-tiny", **{name: value})
        assert failed.returncode == 1
        assert failed.stderr.strip().splitlines()[-1].startswith("error: ")
        passwords = (*deployed.passwords.values(), CANARY)
        assert not [one for one in passwords if one in failed.stdout + failed.stderr]


def dumped(layout, database: str) -> bytes:
    told = {**os.environ, "PGPASSWORD": layout.passwords["postgres"]}
    login = ["-h", "127.0.0.1", "-p", str(layout.ports.postgres), "-U", USER, database]
    return subprocess.run([binaries() / "pg_dump", *login], env=told, capture_output=True, check=True).stdout


def objects_of(layout) -> dict[str, bytes]:
    """Return everything in the store by key: objects, tables, artifacts."""
    keys = {"aws_access_key_id": USER, "aws_secret_access_key": layout.passwords["s3"], "region_name": "us-east-1"}
    store = boto3.client("s3", endpoint_url=layout.s3_url, **keys)
    pages = store.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
    found = [one["Key"] for page in pages for one in page["Contents"]]
    return {key: store.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in found}


def files_of(layout) -> list[Path]:
    """Return the files of the home, but private ones and what the object store writes in its own format."""
    files = [path for path in layout.home.rglob("*") if path.is_file() and not is_private(path, layout.home)]
    return [path for path in files if not path.is_relative_to(layout.folder / "s3")]


def is_private(path: Path, home: Path) -> bool:
    """Return whether no other user may read a file, or enter a folder that it lies in."""
    within = [one for one in (path, *path.parents) if one.is_relative_to(home)]
    return any(stat.S_IMODE(one.stat().st_mode) & 0o077 == 0 for one in within)


def test_a_server_that_dies_comes_back_and_nothing_of_it_is_left(layout):
    processes = mlflow_processes(layout)
    (main,) = [one for one in processes if one.info["cmdline"][1:4] == ["-m", "mlflow", "server"]]
    assert len(processes) > 2, "its guard and its children"
    main.kill()
    _, left = psutil.wait_procs(processes, timeout=30)
    assert not left
    assert dreamgym_here(layout.home, "up").returncode == 0
    assert httpx.get(f"{layout.mlflow_url}/health").status_code == 200


def mlflow_processes(layout) -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["cmdline"]) if str(layout.ports.mlflow) in (one.info["cmdline"] or ())]
