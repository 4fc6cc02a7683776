"""Models in the store: base weights of adapters are stored once, and a model comes back as it was stored."""

import json

import pytest
import torch

from infra.context import objects
from models.network.language_model import load_model
from schemas.errors import StorageError
from schemas.recipes.networks import TrainingRecipe
from tasks.backbones.find_backbone import SHIPPED
from tasks.running.artifacts import (
    fetch_merged_model,
    fetch_reference,
    forget,
    get_frozen_model,
    get_model,
    put_model,
)

pytestmark = pytest.mark.integration
LORA = TrainingRecipe(lora_rank=4, lora_alpha=8)
WEIGHTS = "model.safetensors"
IDS = torch.arange(1, 40)[None]


@pytest.fixture
def backbone(home):
    forget()
    return put_model(load_model(SHIPPED / "textworld-tiny"))


def changed_adapters(reference):
    """Return a stored model with adapters changed as training might."""
    model = get_model(reference, LORA)
    for name, weight in model.network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(0))
    return model


def from_the_store(reference):
    """Return the model as loaded from the store, and not from memory."""
    forget()
    return get_frozen_model(reference)


def test_adapters_lie_beside_the_weights_that_they_were_made_for(backbone):
    model = changed_adapters(backbone)
    first = put_model(model, backbone)
    assert put_model(model, backbone) == first, "the same adapters are the same bytes"
    files = objects().get_json(first)
    assert files[WEIGHTS] == objects().get_json(backbone)[WEIGHTS]
    config = json.loads(objects().get_file(first, "adapter_config.json") or b"")
    assert (config["peft_type"], config["r"], config["lora_alpha"]) == ("LORA", 4, 8)
    torch.testing.assert_close(from_the_store(first).network(IDS).logits, model.network(IDS).logits)


def test_a_temporary_folder_that_is_full_is_named_and_nothing_is_stored(home, backbone, small_disk, monkeypatch):
    stored = set((home / "objects").rglob("*"))
    monkeypatch.setattr("tempfile.tempdir", str(small_disk))
    with pytest.raises(StorageError, match=rf"cannot write a model to {small_disk}: .*No space left.* set TMPDIR"):
        put_model(load_model(SHIPPED / "textworld-tiny", random_init=True))
    assert set((home / "objects").rglob("*")) == stored
    assert not any(small_disk.iterdir())


def test_adapters_of_a_later_round_take_the_place_of_the_earlier(backbone):
    first = put_model(changed_adapters(backbone), backbone)
    model = get_model(first, LORA)
    for weight in model.network.parameters():
        if weight.requires_grad:
            weight.data.mul_(0.5)
    second = put_model(model, first, {})
    assert objects().get_json(second)[WEIGHTS] == objects().get_json(first)[WEIGHTS]
    torch.testing.assert_close(from_the_store(second).network(IDS).logits, model.network(IDS).logits)
    assert not torch.allclose(model.network(IDS).logits, from_the_store(first).network(IDS).logits)


def test_who_knows_no_adapters_gets_plain_weights(backbone, tmp_path):
    stored = put_model(changed_adapters(backbone), backbone)
    fetch_merged_model(stored, tmp_path / "merged")
    assert not list((tmp_path / "merged").glob("adapter*"))
    plain = load_model(tmp_path / "merged")
    expected = from_the_store(stored).network(IDS).logits
    torch.testing.assert_close(plain.network(IDS).logits, expected, atol=1e-4, rtol=1e-4)


def test_a_model_without_adapters_comes_back_as_it_is(backbone, tmp_path):
    fetch_merged_model(backbone, tmp_path / "plain")
    assert {path.name for path in (tmp_path / "plain").iterdir()} == set(objects().get_json(backbone))


def test_what_was_just_made_is_remembered_and_is_what_the_store_holds(backbone):
    model = changed_adapters(backbone)
    made = put_model(model, backbone)
    assert get_frozen_model(made) is model
    remembered, stored = model.network.state_dict(), from_the_store(made).network.state_dict()
    assert remembered.keys() == stored.keys()
    assert all(torch.equal(remembered[name], stored[name]) for name in stored)


def test_of_a_reference_policy_only_the_adapters_are_fetched_where_the_rest_is_the_policys(backbone, tmp_path):
    start = put_model(changed_adapters(backbone), backbone)
    policy = put_model(get_model(start, LORA), start, {})
    fetched = {
        "adapted": (start, policy, LORA),
        "bare": (backbone, policy, LORA),
        "whole": (start, policy, TrainingRecipe()),
    }
    for name, (reference, trained, training) in fetched.items():
        fetch_reference(reference, trained, training, tmp_path / name)
    found = {name: {file.name for file in (tmp_path / name).iterdir()} for name in fetched}
    assert found["adapted"] == {"adapter_model.safetensors", "adapter_config.json"}
    assert found["bare"] == set()
    assert found["whole"] == set(objects().get_json(start))
    other = put_model(load_model(SHIPPED / "textworld-tiny", random_init=True))
    fetch_reference(other, policy, LORA, tmp_path / "other")
    assert (tmp_path / "other" / WEIGHTS).exists(), "its base is another"
