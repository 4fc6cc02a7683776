"""Writes in the background are seen at once, are made in order, and never fail in silence."""

import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.storage.background_blobs import BackgroundBlobs
from infra.storage.blobs import FolderBlobs
from schemas.errors import StorageError


class Held(FolderBlobs):
    """Folder that writes nothing until it may."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.may_write, self.order = Event(), list[str]()

    def write(self, key: str, content: bytes) -> None:
        assert self.may_write.wait(60)
        super().write(key, content)
        self.order.append(key)

    def write_file(self, key: str, file: Path) -> None:
        assert self.may_write.wait(60)
        super().write_file(key, file)
        self.order.append(key)


@pytest.fixture
def weights(tmp_path) -> Path:
    """Return a file with weights, in a folder that is removed."""
    file = tmp_path / "trained" / "weights"
    file.parent.mkdir()
    file.write_bytes(b"weights")
    return file


def test_what_is_not_written_yet_is_read_where_it_waits(tmp_path, weights):
    folder = Held(tmp_path / "store")
    with BackgroundBlobs(folder) as store:
        store.write_file("policy", weights)
        weights.parent.rmdir()
        store.write("result", b"names the policy")
        read = [tmp_path / name for name in ("policy", "result")]
        for file in read:
            store.read_file(file.name, file)
            assert store.read(file.name) == file.read_bytes()
        assert [file.read_bytes() for file in read] == [b"weights", b"names the policy"]
        assert store.holds("result")
        assert not (tmp_path / "store").exists()
        folder.may_write.set()
        store.finish()
        assert folder.order == ["policy", "result"]
        assert folder.read("policy") == store.read("policy") == b"weights"
    assert not store._files.exists()


def test_outside_the_block_a_file_is_moved_at_once(tmp_path, weights):
    store = BackgroundBlobs(FolderBlobs(tmp_path / "store"))
    store.write_file("policy", weights)
    assert not weights.exists()
    assert (tmp_path / "store" / "policy").read_bytes() == b"weights"


def test_a_key_is_created_after_what_was_written_before(tmp_path):
    folder = Held(tmp_path)
    with BackgroundBlobs(folder) as store:
        store.write("policy", b"weights")
        folder.may_write.set()
        assert store.create("promotion", b"of the policy")
        assert folder.order == ["policy"]
        assert not store.create("promotion", b"of another")
        assert store.keys("p") == ["policy", "promotion"]


def write_in_vain(store: BackgroundBlobs) -> None:
    """Write below a file, as if the folder could not be made."""
    store.write("full/policy", b"weights")


def fails():
    return pytest.raises(StorageError, match="cannot write object")


def test_after_a_failed_write_nothing_is_written_and_every_call_says_so(tmp_path):
    (tmp_path / "full").write_bytes(b"a file where a folder should be")
    store = BackgroundBlobs(FolderBlobs(tmp_path))
    with fails(), store:
        write_in_vain(store)
        with fails():
            store.finish()
        for use in (store.holds, store.read, store.delete, lambda key: store.write(key, b"")):
            with fails():
                use("result")
    assert [path.name for path in tmp_path.iterdir()] == ["full"]
    store.write("result", b"at once")
    assert (tmp_path / "result").read_bytes() == b"at once"


def test_the_error_of_the_block_matters_more_than_a_failed_write(tmp_path):
    (tmp_path / "full").touch()

    def interrupted() -> None:
        with BackgroundBlobs(FolderBlobs(tmp_path)) as store:
            write_in_vain(store)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


CHANGES = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.binary(max_size=3), st.booleans()), max_size=12)
"""Keys, the bytes to write or None to delete, and whether these come in a file."""


@settings(deadline=None, max_examples=50)
@given(changes=CHANGES)
def test_any_changes_leave_what_they_leave_one_by_one(changes, tmp_path_factory):
    folder, expected = FolderBlobs(tmp_path_factory.mktemp("store")), dict[str, bytes]()
    file = tmp_path_factory.mktemp("files") / "file"
    with BackgroundBlobs(folder) as store:
        for key, content, in_a_file in changes:
            if content is None:
                store.delete(key)
                expected.pop(key, None)
            elif in_a_file:
                file.write_bytes(content)
                store.write_file(key, file)
                expected[key] = content
            else:
                store.write(key, content)
                expected[key] = content
            assert {one for one in "abc" if store.holds(one)} == expected.keys()
            assert {one: store.read(one) for one in expected} == expected
            for absent in set("abc") - expected.keys():
                with pytest.raises(StorageError):
                    store.read(absent)
    assert {one: folder.read(one) for one in folder.keys("")} == expected


WRITER = """
import sys
from pathlib import Path
from infra.storage.background_blobs import BackgroundBlobs
from infra.storage.blobs import FolderBlobs

with BackgroundBlobs(FolderBlobs(Path(sys.argv[1]))) as store:
    for number in range(1000):
        store.write(f"{number:04d}", bytes(2**20))
        if number == 100:
            store.finish()
            print("on", flush=True)
"""


def test_a_killed_process_leaves_the_first_writes_and_none_after_a_lost_one(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "on\n"
        process.send_signal(signal.SIGKILL)
    found = FolderBlobs(tmp_path).keys("")
    assert found == [f"{number:04d}" for number in range(len(found))]
    assert 100 < len(found) < 1000
