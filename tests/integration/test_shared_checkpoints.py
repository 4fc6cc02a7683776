"""Shared checkpoints: a machine dies amid a fine-tuning, and another goes on from its checkpoint in the bucket."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from infra.settings import Settings
from infra.storage.blobs import Blobs, open_blobs
from tasks.running.shared_checkpoints import CHECKPOINTS
from tests.command_line import environment
from tests.integration import fine_tuning
from tests.integration.s3 import s3_server

pytestmark = pytest.mark.integration


@pytest.fixture
def stores():
    with s3_server("shared") as address:
        yield {
            "object_store": "s3://shared/objects",
            "s3_endpoint": address,
            "s3_access_key": "key",
            "s3_secret_key": "secret",
        }


def begun_on(machine: Path, stores: dict[str, str]) -> subprocess.Popen[str]:
    told = {f"DREAMGYM_{name.upper()}": value for name, value in stores.items()}
    return subprocess.Popen(
        [sys.executable, "-m", fine_tuning.__name__],
        env={**environment(machine), **told, "DREAMGYM_CHECKPOINT_EVERY_S": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )


def ended(training: subprocess.Popen[str]) -> dict:
    said, _ = training.communicate(timeout=600)
    assert training.returncode == 0
    return json.loads(said)


def num_updates_kept(bucket: Blobs) -> int:
    """Return the number of updates of the latest checkpoint, or 0."""
    return max((int(Path(key).name[:8]) for key in bucket.keys(CHECKPOINTS)), default=0)


def test_another_machine_goes_on_with_what_one_began_before_it_died(tmp_path, stores):
    undisturbed = begun_on(tmp_path / "alone", {})
    bucket = open_blobs(Settings(home=tmp_path, **stores))
    first = begun_on(tmp_path / "first", stores)
    while (kept := num_updates_kept(bucket)) <= 20:
        assert first.poll() is None
        time.sleep(0.1)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate()
    assert 20 < kept < fine_tuning.NUM_UPDATES
    second = ended(begun_on(tmp_path / "second", stores))
    assert min(second["steps"]) > 20, "the steps before were not taken again"
    assert max(second["steps"]) == fine_tuning.NUM_UPDATES
    assert not bucket.keys(CHECKPOINTS), "nobody needs them any more"
    assert second["digest"] == ended(undisturbed)["digest"]
