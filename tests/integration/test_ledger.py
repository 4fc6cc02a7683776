"""Ledger on a folder and on S3: one writer per fence, and no damage goes unseen."""

import multiprocessing
import time
from pathlib import Path

import pytest

from infra.promotion.ledger import Ledger
from infra.settings import Settings
from infra.storage.blobs import FolderBlobs, open_blobs, require_conditional_puts
from schemas.errors import IntegrityError, StorageError
from schemas.ledger import Decision, Entry, History
from schemas.records import Reference
from tests.integration.s3 import s3_server

pytestmark = pytest.mark.integration


@pytest.fixture(params=["folder", "s3"])
def store(request, tmp_path):
    if request.param == "folder":
        yield Settings(home=tmp_path)
        return
    with s3_server("ledger") as address:
        yield Settings(
            home=tmp_path,
            object_store=f"s3://ledger/{tmp_path.name}",
            s3_endpoint=address,
            s3_access_key="key",
            s3_secret_key="secret",
        )


def promotion(name: str, by: str = "me") -> Entry:
    return Entry(Decision.PROMOTED, Reference(name, name * 8, "model"), "g", passed=True, by=by)


def test_entries_come_back_in_order_to_another_reader(store):
    ledger = Ledger(open_blobs(store))
    assert ledger.history() == History()
    written = [ledger.append(lambda _, name=name: promotion(name)) for name in "abc"]
    assert ledger.append(lambda _: None) is None
    assert Ledger(open_blobs(store)).history().entries == tuple(written)


def test_the_store_of_a_ledger_creates_a_key_once(store):
    blobs = open_blobs(store)
    require_conditional_puts(blobs)
    assert blobs.keys("probe/") == []


class Forgetful(FolderBlobs):
    """Store that accepts every creation, as some S3-compatible servers do."""

    def create(self, key, content):
        self.write(key, content)
        return True


class Hasty(FolderBlobs):
    """Store that looks first and writes then: right in turn, wrong in a race."""

    def create(self, key, content):
        if self.holds(key):
            return False
        time.sleep(0.05)
        self.write(key, content)
        return True


@pytest.mark.parametrize("store_of", [Forgetful, Hasty])
def test_a_store_that_lets_two_create_one_key_is_refused(tmp_path, store_of):
    with pytest.raises(StorageError, match="ignores conditional puts"):
        require_conditional_puts(store_of(tmp_path))


def append_when_it_is_my_turn(store: Settings, by: str, times: int, won) -> None:
    """Try to promote `times` times, each time only if no other entry was added since the last look."""
    ledger = Ledger(open_blobs(store))
    for _ in range(times):
        seen = len(ledger.history().entries)
        entry = ledger.append(lambda now, seen=seen: promotion("x", by) if len(now.entries) == seen else None)
        won.put((seen, by, entry is not None))


def test_of_many_writers_one_wins_each_fence(store):
    context = multiprocessing.get_context("spawn")
    won = context.Queue()
    writers = [
        context.Process(target=append_when_it_is_my_turn, args=(store, f"writer {n}", 10, won)) for n in range(4)
    ]
    for writer in writers:
        writer.start()
    tries = [won.get(timeout=120) for _ in range(40)]
    for writer in writers:
        writer.join()
    entries = Ledger(open_blobs(store)).history().entries
    winners = {fence: by for fence, by, wrote in tries if wrote}
    assert len(winners) == sum(wrote for _, _, wrote in tries), "two winners at one fence"
    assert [entry.by for entry in entries] == [winners[fence] for fence in range(len(entries))]


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text(path.read_text().replace("me", "we")),
        lambda path: path.write_bytes(path.read_bytes()[:-9]),
        lambda path: path.write_bytes(b""),
        lambda path: path.unlink(),
    ],
    ids=["changed", "truncated", "emptied", "deleted"],
)
def test_damage_is_found(tmp_path, damage, number):
    ledger = Ledger(FolderBlobs(tmp_path))
    for name in "ab":
        ledger.append(lambda _, name=name: promotion(name))
    damage(Path(tmp_path) / "ledger" / f"0000000{number}.json")
    with pytest.raises(IntegrityError, match="ledger"):
        Ledger(FolderBlobs(tmp_path)).history()


def test_entries_that_change_places_are_found(tmp_path):
    ledger = Ledger(FolderBlobs(tmp_path))
    for name in "abc":
        ledger.append(lambda _, name=name: promotion(name))
    second, third = (tmp_path / "ledger" / f"0000000{n}.json" for n in (2, 3))
    content = second.read_bytes(), third.read_bytes()
    second.write_bytes(content[1])
    third.write_bytes(content[0])
    with pytest.raises(IntegrityError, match="corrupt"):
        Ledger(FolderBlobs(tmp_path)).history()
