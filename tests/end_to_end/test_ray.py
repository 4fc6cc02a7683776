"""Shards of dreams and the experience model on a Ray cluster of two nodes, one of which dies amid a round.

S3 is served on loopback.
"""

import json
import subprocess
import time
from collections import Counter

import pytest

from infra.settings import Settings
from infra.storage.replay_store import ReplayStore
from tests.command_line import COMMAND, TOY, changed, digests, dreamgym_here, environment
from tests.integration.s3 import s3_server

pytest.importorskip("ray", reason="pip install 'dreamgym[ray]'")
from tests.integration.ray_nodes import Nodes, two_nodes

ARGUMENTS = (
    "run",
    "textworld-tiny",
    *changed(*TOY, "dream.num_shards=2", "dream.num_rounds=1", "rl.group_size=8"),
    "--only",
    "dream",
    "--json",
)
TABLES = ("transitions", "agent_tasks", "evaluations")


@pytest.fixture
def stores():
    with s3_server("shared") as address:
        yield {
            "object_store": "s3://shared/objects",
            "replay_store": "s3://shared/replay",
            "s3_endpoint": address,
            "s3_access_key": "key",
            "s3_secret_key": "secret",
        }


def row_ids(settings: Settings) -> dict[str, Counter[str]]:
    store = ReplayStore(settings)
    return {table: Counter(row["row_id"] for row in store.read(table, columns=["row_id"])) for table in TABLES}


@pytest.mark.e2e
def test_a_node_dies_amid_a_round_and_all_is_as_without_a_cluster(tmp_path, stores, prefect_server):
    told = {f"DREAMGYM_{name.upper()}": value for name, value in stores.items()}
    on_ray, alone, its_prefect = tmp_path / "on-ray", tmp_path / "alone", {"PREFECT_API_URL": prefect_server}
    with two_nodes(**environment(tmp_path / "node"), **told) as nodes:
        running = subprocess.Popen(
            [COMMAND, *ARGUMENTS],
            env={**environment(on_ray), **told, **its_prefect, "DREAMGYM_RAY_ADDRESS": nodes.address},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        kill_amid_a_round(nodes, running)
        answer, complaints = running.communicate(timeout=1800)
    assert running.returncode == 0, complaints
    assert "will be retried" in complaints, "the node died with a shard"
    quiet = dreamgym_here(alone, *ARGUMENTS, **its_prefect)
    assert quiet.returncode == 0, quiet.stderr
    disturbed, undisturbed = json.loads(answer)["lineage"], json.loads(quiet.stdout)["lineage"]
    for name in ("experience_model", "dreams", "dream"):
        assert digests(disturbed[name]) == digests(undisturbed[name])
    assert row_ids(Settings(home=on_ray, **stores)) == row_ids(Settings(home=alone))


def kill_amid_a_round(nodes: Nodes, running: subprocess.Popen[str]) -> None:
    """Kill the second node once both dream: the experience model is fitted by one alone."""
    while running.poll() is None and nodes.num_busy() < 2:
        time.sleep(0.1)
    time.sleep(1)
    nodes.kill_second()


@pytest.mark.e2e
def test_a_cluster_that_is_not_there_is_an_input_error(tmp_path):
    refused = dreamgym_here(tmp_path, *ARGUMENTS, DREAMGYM_RAY_ADDRESS="127.0.0.1:9")
    assert refused.returncode == 2
    assert "no Ray cluster at DREAMGYM_RAY_ADDRESS 127.0.0.1:9" in refused.stderr
