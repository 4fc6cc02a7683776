"""Fixtures that several integration tests use."""

import subprocess

import pytest
from rich.console import Console

from infra.context import RunContext, set_run_context
from infra.progress.progress import Display
from infra.settings import settings
from infra.tracking.tracker import Tracker
from models.network.language_model import load_model
from tasks.backbones.find_backbone import SHIPPED
from tasks.running.artifacts import forget, put_model
from tests.fresh import use_home


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Give the test a home of its own."""
    use_home(tmp_path, monkeypatch)
    yield tmp_path
    use_home(tmp_path, monkeypatch)


@pytest.fixture
def in_a_cycle(home):
    """Set the context of a run in a home of its own."""
    forget()
    set_run_context(RunContext("kept", "recipe", Tracker(settings(), "kept", {}), Display(Console(quiet=True))))


@pytest.fixture
def policy(in_a_cycle):
    """Store the shipped backbone in a run of its own, and return its reference."""
    return put_model(load_model(SHIPPED / "textworld-tiny"))


@pytest.fixture
def small_disk(tmp_path):
    """Yield the folder of a file system that is soon full."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], check=False)
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root: run as root to test a full disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)
