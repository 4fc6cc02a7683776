"""Temporary folders: removed when their process is done with them, or by the next one if it was killed."""

import subprocess
import sys

import pytest

from infra.files.scratch_folder import scratch_folder

OF_ANOTHER_PROCESS = """
from infra.files.scratch_folder import scratch_folder

with scratch_folder("tests") as folder:
    (folder / "weights").write_bytes(bytes(1000))
    print(folder.name, flush=True)
    input()
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return the place of temporary folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def folders(place):
    return {path.name for path in place.iterdir() if path.is_dir()}


def test_a_folder_is_there_for_its_block(place):
    with scratch_folder("tests") as first, scratch_folder("tests") as second:
        (first / "file").touch()
        assert folders(place) == {first.name, second.name}
    assert folders(place) == set()


def test_what_a_killed_process_left_is_removed_and_nothing_of_one_that_lives(place):
    with subprocess.Popen(
        [sys.executable, "-c", OF_ANOTHER_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        name = other.stdout.readline().strip()
        with scratch_folder("tests") as own:
            assert folders(place) == {own.name, name}
        other.kill()
    assert folders(place) == {name}
    with scratch_folder("other tests") as own:
        assert folders(place) == {own.name, name}
    with scratch_folder("tests") as own:
        assert folders(place) == {own.name}
