"""Run that trains adapters alone, on two ranks: every model of it is the backbone plus a few weights."""

import json

import pytest

from infra.settings import Settings
from infra.storage.blobs import open_blobs
from infra.storage.object_store import ObjectStore
from schemas.records import Reference
from tests.command_line import LENIENT_GATE, TOY, changed, dreamgym_here


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_every_model_of_the_cycle_is_the_backbone_with_adapters(tmp_path):
    training = ("training.lora_rank=4", "training.gradient_checkpointing=true")
    arguments = changed(*TOY, *LENIENT_GATE, "dream.num_rounds=1", *training)
    done = dreamgym_here(tmp_path, "run", "textworld-tiny", *arguments, "--json", DREAMGYM_NUM_RANKS="2")
    assert done.returncode == 0, done.stderr
    store, lineage = ObjectStore(open_blobs(Settings(home=tmp_path))), json.loads(done.stdout)["lineage"]
    backbone, *trained = [
        store.get_json(Reference(**lineage[name]["__reference__"]))
        for name in ("backbone", "start", "experience_model", "dream", "sim_to_real")
    ]
    assert {files["model.safetensors"] for files in trained} == {backbone["model.safetensors"]}
    start, experience_model, *_ = (files["adapter_model.safetensors"] for files in trained)
    assert start != experience_model
