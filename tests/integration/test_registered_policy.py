"""Registered policy through MLflow's own interfaces: it downloads, loads, and computes what was stored."""

import json
from pathlib import Path

import mlflow
import pytest
import torch
from mlflow import MlflowClient
from mlflow.exceptions import MlflowException

from infra.context import ledger, objects, registry
from models.network.language_model import load_model
from schemas.ledger import Decision, Entry
from schemas.recipes.networks import TrainingRecipe
from tasks.backbones.find_backbone import SHIPPED
from tasks.running.artifacts import forget, get_frozen_model, get_model, put_model
from tests.free_ports import free_port
from tests.fresh import reset_context
from tests.integration.tracking_server import mlflow_server

pytestmark = pytest.mark.integration

CHAMPION = "models:/dreamgym-policy@champion"
IDS = torch.arange(1, 40)[None]


@pytest.fixture
def tracked_at(home):
    """Yield a function that points this process's MLflow to an address, as MLFLOW_TRACKING_URI would."""

    def track(address: str) -> None:
        mlflow.set_tracking_uri(address)

    before = mlflow.get_tracking_uri()
    yield track
    mlflow.set_tracking_uri(before)


@pytest.fixture
def embedded(home, tracked_at):
    """Use MLflow on SQLite, in this home."""
    tracked_at(f"sqlite:///{home / 'mlflow.db'}")
    forget()


def stored():
    return put_model(load_model(SHIPPED / "textworld-tiny"), None, {"step": torch.ones(2)})


def promoted(policy):
    ledger().append(lambda _: Entry(Decision.PROMOTED, policy, "", True, "me"))
    registry().follow(ledger())
    return policy


def with_adapters(policy):
    model = get_model(policy, TrainingRecipe(lora_rank=4, lora_alpha=8))
    for name, weight in model.network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(0))
    return put_model(model, policy)


def logits_of(network) -> torch.Tensor:
    with torch.no_grad():
        return network(IDS).logits


def test_the_champion_downloads_as_the_stored_bytes_without_the_optimisers_state(embedded, tmp_path):
    policy = promoted(stored())
    folder = Path(mlflow.artifacts.download_artifacts(CHAMPION, dst_path=str(tmp_path)))
    names = {path.name for path in (folder / "model").iterdir()}
    assert names == objects().get_json(policy).keys() - {"optimizer.safetensors"}
    for name in names:
        assert (folder / "model" / name).read_bytes() == objects().get_file(policy, name)
    assert {path.name for path in (folder / "components" / "tokenizer").iterdir()} == {
        "tokenizer.json",
        "tokenizer_config.json",
    }


@pytest.mark.parametrize("make", [stored, lambda: with_adapters(stored())], ids=["all weights", "adapters"])
def test_mlflow_loads_what_was_stored(embedded, make):
    policy = promoted(make())
    forget()
    pipeline = mlflow.transformers.load_model(CHAMPION)
    torch.testing.assert_close(logits_of(pipeline.model), logits_of(get_frozen_model(policy).network))
    assert pipeline.tokenizer.get_vocab() == get_frozen_model(policy).tokenizer.get_vocab()
    (written,) = mlflow.pyfunc.load_model(CHAMPION).predict(["[task] cook the carrot"], params={"max_new_tokens": 2})
    assert written.startswith("[task] cook the carrot")


def test_a_server_takes_the_versions_and_they_load_by_http(home, tracked_at, monkeypatch):
    port = free_port()
    monkeypatch.setenv("DREAMGYM_TRACKING_URI", f"http://127.0.0.1:{port}")
    reset_context()
    forget()
    with mlflow_server(home, port):
        tracked_at(f"http://127.0.0.1:{port}")
        policy = promoted(stored())
        assert sorted(one.path for one in mlflow.artifacts.list_artifacts(CHAMPION)) == [
            "MLmodel",
            "components",
            "model",
        ]
        loaded = mlflow.transformers.load_model(CHAMPION)
        torch.testing.assert_close(logits_of(loaded.model), logits_of(get_frozen_model(policy).network))
        told = MlflowClient().get_model_version_by_alias("dreamgym-policy", "champion").description
    assert 'load_model("models:/dreamgym-policy/1")' in told


def test_one_flipped_bit_does_not_load(embedded):
    policy = promoted(stored())
    sha256 = objects().get_json(policy)["model.safetensors"]
    damaged = Path(policy.uri).parents[1] / sha256[:2] / sha256
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(MlflowException, match=rf"object {sha256[:12]}.*is corrupt"):
        mlflow.transformers.load_model(CHAMPION)


def test_who_looks_in_another_home_is_told_what_names_it(embedded, tmp_path, monkeypatch):
    policy = promoted(stored())
    monkeypatch.setenv("DREAMGYM_HOME", str(tmp_path / "other"))
    reset_context()
    with pytest.raises(MlflowException, match=rf"{policy.sha256}.*DREAMGYM_HOME or DREAMGYM_OBJECT_STORE"):
        mlflow.artifacts.download_artifacts(CHAMPION)


def test_the_metadata_is_read_without_the_weights(embedded):
    policy = promoted(stored())
    sha256 = objects().get_json(policy)["model.safetensors"]
    (Path(policy.uri).parents[1] / sha256[:2] / sha256).unlink()
    assert {"transformers", "python_function"} == mlflow.models.get_model_info(CHAMPION).flavors.keys()
    metadata = Path(mlflow.artifacts.download_artifacts(f"{CHAMPION}/MLmodel")).read_text()
    assert json.loads(metadata)["model_uuid"] == policy.sha256[:32]


def test_what_is_not_a_file_of_the_policy_is_not_read(embedded):
    promoted(stored())
    for name in ("model/optimizer.safetensors", "model/../../ledger/00000001.json"):
        with pytest.raises(MlflowException):
            mlflow.artifacts.download_artifacts(f"{CHAMPION}/{name}")
