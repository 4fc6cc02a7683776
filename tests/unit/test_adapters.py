"""Low-rank adapters: computed as peft computes them, trained alone, and merged without a difference."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models.network.language_model import LanguageModel, load_model
from models.network.lora import adapters_in, has_adapters, is_adapter, merged, share_base
from models.network.packed import forward
from models.network.trained_parameters import trainable_copy
from models.network.transformer import logits_of, weights_of
from models.text.prompts import PromptFormat
from models.training.adapted_reference import AdaptedReference
from models.training.sft import Example, fit, repeated, sft_loss
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Tokens
from tests.chat import chat_tokenizer
from tests.training import group_of, rl, trainer_of
from tests.unit.tiny import tiny_network

IDS = torch.randint(0, 64, (3, 17), generator=torch.Generator().manual_seed(1))
EXAMPLES = [Example.of(([5, 6, 7], False), ([8, 9, number], True)) for number in range(10, 18)]


def adapted(kind="qwen3"):
    """Return a network with adapters as training leaves them: the B matrices are no longer zero."""
    network = trainable_copy(tiny_network(kind=kind), TrainingRecipe(lora_rank=4, lora_alpha=8), seed=0)
    for name, weight in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return network


def logits(network, *, for_sampling=False):
    weights = weights_of(network, torch.float32, for_sampling=for_sampling)
    return logits_of(weights, forward(weights, IDS.tolist())[: IDS.numel()]).unflatten(0, IDS.shape)


def gradients(network):
    return {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_logits_and_gradients_are_those_of_peft(kind):
    ours, theirs = adapted(kind), adapted(kind)
    theirs.load_state_dict(ours.state_dict())
    logits(ours).square().mean().backward()
    theirs(IDS).logits.square().mean().backward()
    torch.testing.assert_close(logits(ours), theirs(IDS).logits, atol=1e-5, rtol=1e-5)
    assert gradients(ours).keys() == gradients(theirs).keys()
    for name, gradient in gradients(theirs).items():
        torch.testing.assert_close(gradients(ours)[name], gradient, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_merging_changes_nothing(kind):
    network = adapted(kind)
    expected = logits(network)
    torch.testing.assert_close(logits(network, for_sampling=True), expected, atol=1e-5, rtol=1e-5)
    plain = merged(network)
    assert not any("lora" in name for name in plain.state_dict())
    torch.testing.assert_close(plain(IDS).logits, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logits(network), expected)


def test_new_adapters_change_nothing_and_are_the_same_for_a_seed():
    network = tiny_network()
    first, again, other = (
        trainable_copy(network, TrainingRecipe(lora_rank=4, lora_alpha=8), seed=seed) for seed in (1, 1, 2)
    )
    torch.testing.assert_close(logits(first), logits(network))
    down = "model.layers.0.mlp.down_proj.lora_A.default.weight"
    assert torch.equal(first.state_dict()[down], again.state_dict()[down])
    assert not torch.equal(first.state_dict()[down], other.state_dict()[down])
    assert not has_adapters(network)


def test_only_adapters_learn_and_the_weights_beneath_are_shared():
    network = tiny_network()
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    copied = trainable_copy(network, TrainingRecipe(lora_rank=4, lora_alpha=8), seed=0)
    assert copied.model.embed_tokens.weight is network.model.embed_tokens.weight
    loss = sft_loss(copied, EXAMPLES, torch.float32).item()
    fit(copied, repeated(EXAMPLES, 256, seed=0), 30, 1e-2)
    assert sft_loss(copied, EXAMPLES, torch.float32).item() < 0.8 * loss
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, before[name]), name


def test_a_further_copy_goes_on_with_the_adapters_it_finds():
    network = adapted()
    copied = trainable_copy(network, TrainingRecipe(lora_rank=4, lora_alpha=8), seed=9)
    torch.testing.assert_close(logits(copied), logits(network))
    fit(copied, repeated(EXAMPLES, 256, seed=0), 1, 1e-2)
    assert not torch.allclose(logits(copied), logits(network))


def narrow(folder):
    """Return a network that is stored in bfloat16, as large models are, loaded anew."""
    tokenizer = chat_tokenizer()
    network = tiny_network(vocab_size=len(tokenizer)).to(torch.bfloat16)
    LanguageModel(network, tokenizer, PromptFormat(tokenizer)).save(folder)
    return load_model(folder)


def test_a_base_in_bfloat16_stays_so_and_computes_what_it_computes_in_float32(tmp_path):
    base = narrow(tmp_path).network
    assert base.dtype == torch.bfloat16
    copied = trainable_copy(base, TrainingRecipe(lora_rank=4), seed=0)
    assert {weight.dtype for weight in copied.parameters() if weight.requires_grad} == {torch.float32}
    assert copied.model.embed_tokens.weight is base.model.embed_tokens.weight
    wide = trainable_copy(deepcopy(base).float(), TrainingRecipe(lora_rank=4), seed=0)
    wide.load_state_dict(copied.state_dict())
    for network in (copied, wide):
        fit(network, repeated(EXAMPLES, 256, seed=0), 5, 1e-2)
    torch.testing.assert_close(logits(copied), logits(wide), atol=0, rtol=0)
    torch.testing.assert_close(logits(copied, for_sampling=True), logits(wide, for_sampling=True), atol=0, rtol=0)


def test_adapters_over_bfloat16_are_stored_and_loaded_without_a_loss(tmp_path):
    model = narrow(tmp_path)
    copied = trainable_copy(model.network, TrainingRecipe(lora_rank=4), seed=0)
    fit(copied, repeated(EXAMPLES, 256, seed=0), 5, 1e-2)
    replace(model, network=copied).save(tmp_path)
    again = load_model(tmp_path).network
    torch.testing.assert_close(logits(again), logits(copied), atol=0, rtol=0)
    assert merged(again).dtype == torch.bfloat16
    assert share_base(again, model.network)
    assert again.model.embed_tokens.weight.data_ptr() == model.network.model.embed_tokens.weight.data_ptr()
    torch.testing.assert_close(logits(again), logits(copied), atol=0, rtol=0)
    assert not share_base(tiny_network(), model.network)


def files_of(model: LanguageModel, folder: Path) -> dict[str, bytes]:
    """Return the files of a model with new adapters."""
    replace(model, network=trainable_copy(model.network, TrainingRecipe(lora_rank=4), seed=0)).save(folder)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_files_of_equal_adapters_are_equal_wherever_they_were_made_and_loaded(tmp_path):
    one, two = (files_of(narrow(tmp_path / name), tmp_path / name) for name in ("one", "two"))
    assert one == two
    loaded_anew = files_of(load_model(tmp_path / "one"), tmp_path / "three")
    assert loaded_anew.items() <= one.items()
    assert not any(str(tmp_path).encode() in content for content in one.values())


def test_a_reference_over_the_same_base_is_worth_a_network_of_its_own():
    shared, apart = adapted(), adapted()
    other = adapted()
    for name, weight in other.named_parameters():
        if is_adapter(name):
            weight.data += 0.01
    adapters = {name: weight.detach().clone() for name, weight in other.named_parameters() if is_adapter(name)}
    tokens = [Tokens([1, 2, 3 + n, 4], [False, False, True, True], [0.0] * 4) for n in range(2)]
    groups = [group_of(tokens, [1.0, -1.0], name) for name in "ab"]
    options = rl(loss={"kl_coefficient": 0.1}, updates_per_round=2)
    metrics = trainer_of(apart, other, options).train(groups)
    assert trainer_of(shared, AdaptedReference(shared, adapters), options).train(groups) == metrics
    assert metrics["kl"] > 0
    torch.testing.assert_close(shared.state_dict(), apart.state_dict(), atol=0, rtol=0)


def test_a_reference_without_adapters_is_the_base(tmp_path):
    network = adapted()
    none = AdaptedReference(network, adapters_in(tmp_path, network))
    before = logits(network)
    with none.in_place() as reference:
        torch.testing.assert_close(logits(reference), logits(tiny_network()))
    torch.testing.assert_close(logits(network), before, atol=0, rtol=0)


def test_all_weights_of_a_bfloat16_model_are_trained_in_float32(tmp_path):
    copied = trainable_copy(narrow(tmp_path).network, TrainingRecipe(), seed=0)
    assert {weight.dtype for weight in copied.parameters()} == {torch.float32}


def test_without_a_rank_all_weights_are_copied_and_learn():
    network = tiny_network()
    before = logits(network)
    copied = trainable_copy(network, TrainingRecipe(lora_rank=0, lora_alpha=8), seed=0)
    fit(copied, repeated(EXAMPLES, 256, seed=0), 1, 1e-2)
    assert all(weight.requires_grad for weight in copied.parameters())
    torch.testing.assert_close(logits(network), before)
    assert not torch.allclose(logits(copied), before)
