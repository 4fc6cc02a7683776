"""Maintenance over simulated days: nothing that is named goes, everything else does, and tables stay small."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from infra.promotion.ledger import Ledger
from infra.settings import Settings
from infra.storage.blobs import FolderBlobs
from infra.storage.object_store import ObjectStore
from infra.storage.replay_store import ReplayStore
from schemas.ledger import Decision, Entry
from tasks.running.maintain import maintain
from tests.integration.test_stores import row

pytestmark = pytest.mark.integration

DAY_S = 86_400


class Place:
    """Stores of one home whose objects can be made older."""

    def __init__(self, home: Path) -> None:
        self.root = home / "objects"
        self.blobs, self.tables = FolderBlobs(self.root), ReplayStore(Settings(home=home))
        self.objects, self.ledger = ObjectStore(self.blobs), Ledger(self.blobs)

    def model(self, name: str):
        return self.objects.put_json(
            {"weights": self.objects.put(f"weights of {name}".encode(), "file").sha256}, "model"
        )

    def age(self, days: float) -> None:
        for key in self.blobs.keys(""):
            path = self.root / key
            os.utime(path, (time.time(), path.stat().st_mtime - days * DAY_S))

    def holds(self, model) -> bool:
        return self.objects.holds(model)

    def maintain(self, keep_days: float = 30):
        return maintain(self.blobs, self.tables, timedelta(days=keep_days))


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_what_ledger_summary_and_fresh_results_name_stays_and_the_rest_goes(place):
    champion, judged, finished, cached, forgotten = map(place.model, "abcde")
    place.ledger.append(lambda _: Entry(Decision.PROMOTED, champion, "", passed=True))
    gate = place.objects.put_json({"candidate": judged.sha256}, "gate")
    summary = {"lineage": {"dream": finished.sha256}, "gate": gate.sha256}
    place.blobs.write("cycles/one.json", json.dumps(summary).encode())
    place.age(40)
    place.blobs.write("results/key", f"seal\n{cached.sha256}".encode())
    gone = place.maintain()
    assert all(map(place.holds, (champion, judged, finished, cached)))
    assert place.objects.get(gate)
    assert not place.holds(forgotten)
    assert gone.num_objects == 2, "a manifest and its weights"
    place.age(40)
    assert place.maintain().num_results == 1
    assert not place.holds(cached)
    assert all(map(place.holds, (champion, judged, finished)))


def test_a_checkpoint_stays_as_long_as_its_training_may_be_gone_on_with(place):
    place.blobs.write("checkpoints/training/00000020-a.checkpoint", b"weights")
    place.age(29)
    place.maintain()
    assert place.blobs.keys("checkpoints/")
    place.age(2)
    place.maintain()
    assert not place.blobs.keys("checkpoints/")


def test_an_object_that_is_just_written_may_belong_to_a_running_task(place):
    young = place.model("young")
    place.maintain()
    assert place.holds(young)
    place.age(2)
    place.maintain()
    assert not place.holds(young)


def test_thirty_days_of_tagged_versions_stay_readable_and_bounded(place):
    for day in range(30):
        for hour in range(4):
            place.tables.upsert("agent_tasks", [row(f"{day}-{hour}-{n}") for n in range(5)])
        place.tables.upsert("agent_tasks", [row(f"{day}")], tag=f"cycle-{day}-logs")
        if day % 2:
            logs = {"__reference__": {"notes": {"table_tag": f"cycle-{day}-logs"}}}
            place.blobs.write(f"cycles/cycle-{day}.json", json.dumps({"lineage": {"logs": logs}}).encode())
        place.maintain(keep_days=0)
    table = place.tables._database.open_table("agent_tasks")
    assert len(table.list_versions()) <= 15 + 3, "those that a cycle's lineage names, and the latest"
    assert sorted(table.tags.list()) == sorted(f"cycle-{day}-logs" for day in range(1, 30, 2))
    for day in range(1, 30, 2):
        rows = place.tables.read("agent_tasks", as_of=f"cycle-{day}-logs")
        assert len(rows) == 21 * (day + 1)
    place.tables.verify("agent_tasks", {f"cycle-{day}-logs" for day in range(1, 30, 2)})
    assert len(place.blobs.keys("table-seals/")) == 15
    fragments = len(table.to_lance().get_fragments())
    assert fragments <= 2
    assert place.maintain().num_versions["agent_tasks"] == 0, "nothing is older than thirty days"
