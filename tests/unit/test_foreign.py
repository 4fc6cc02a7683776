"""Networks that transformers computes: trained and sampled as ours are, each stream as if it were alone."""

import json
import os
import warnings
from copy import deepcopy

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, BertConfig, Gemma3Config, T5Config

from models.generation.foreign_sessions import rows_of
from models.generation.torch_engine import TorchEngine
from models.methods.streams import TrainingGroup, TrainingStream
from models.network.foreign.requirements import require_faithful, require_shape
from models.network.foreign.weights import ForeignWeights, foreign_weights_of
from models.network.language_model import load_architecture, load_model, network_without_values, require_computable
from models.network.lora import add_adapters, merged
from models.network.trained_parameters import trainable_copy
from models.network.transformer import is_foreign, weights_of
from models.training.sft import Example, fit, repeated, sft_loss
from models.training.trained_logprobs import trained_logprobs
from schemas.errors import InputError
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Tokens
from schemas.sampling import Sampling
from tasks.backbones.find_backbone import SHIPPED
from tests.training import group_of, rl, trainer_of
from tests.unit.test_gradient_checkpointing import bytes_kept, fine_tuning, update
from tests.unit.tiny import FOREIGN, tiny_network, true_logprobs

FULL, LORA = TrainingRecipe(), TrainingRecipe(lora_rank=4, lora_alpha=8)
EXAMPLES = [Example.of(([5, 0, 7] * number, False), ([8, 9, 10 + number], True)) for number in range(1, 6)]


def tokens(prompt: list[int], *turns: tuple[list[int], list[int]]) -> Tokens:
    """Return a stream: its prompt, and turns of sampled tokens and of what comes after them."""
    ids, acts = list(prompt), [False] * len(prompt)
    for action, shown in turns:
        ids += [*action, *shown]
        acts += [True] * len(action) + [False] * len(shown)
    return Tokens(ids, acts, [-1.0] * len(ids))


PROMPT = [11, 12, 13, 14, 15, 16, 17, 18]
LONG = tokens(PROMPT, ([20, 21, 22], [30, 31, 32, 33, 34]), ([23, 24], []))
GROUPS = [
    group_of([LONG, tokens(PROMPT, ([25], [])), LONG], [1.0, -1.0, 0.5]),
    group_of([tokens([40, 41], ([42, 43, 44, 45], [])), tokens([40], ([46, 47], []))], [1.0, -1.0]),
]


def logprobs_alone(network, groups: list[TrainingGroup], temperature: float) -> torch.Tensor:
    """Return log-probabilities of sampled tokens by transformers' own forward pass, one stream at a time."""
    found = []
    for one in (stream.tokens for group in groups for stream in group.streams):
        table = (network(torch.tensor([one.ids])).logits[0] / temperature).log_softmax(-1)
        found += [table[place - 1, one.ids[place]] for place, acts in enumerate(one.is_action) if acts]
    return torch.stack(found)


def gradients(network) -> torch.Tensor:
    found = torch.cat([one.grad.flatten() for one in network.parameters() if one.grad is not None])
    network.zero_grad()
    return found


def assert_alike(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert (ours - theirs).norm() <= 1e-5 * theirs.norm()


@pytest.mark.parametrize("kind", FOREIGN)
def test_scored_tokens_are_as_likely_as_in_each_stream_alone(kind):
    network = tiny_network(kind=kind)
    assert is_foreign(network)
    found = trained_logprobs(weights_of(network, torch.float32), GROUPS, 0.8)
    (found * torch.linspace(-1, 1, len(found))).sum().backward()
    ours = gradients(network)
    expected = logprobs_alone(network, GROUPS, 0.8)
    (expected * torch.linspace(-1, 1, len(found))).sum().backward()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert_alike(ours, gradients(network))


BOTH_WAYS = pytest.mark.parametrize("kind", ["llama", "qwen3"])


def computed_both_ways(monkeypatch, compute) -> list:
    """Return what is computed by our own forward pass, and by that of transformers."""
    found = []
    for is_theirs in (False, True):
        monkeypatch.setattr("models.network.transformer.is_foreign", lambda _, answer=is_theirs: answer)
        found.append(compute())
    return found


@BOTH_WAYS
def test_both_ways_have_the_same_losses_and_gradients(kind, monkeypatch):
    network = tiny_network(kind=kind)

    def compute():
        weights = weights_of(network, torch.float32)
        loss, logprobs = sft_loss(network, EXAMPLES, torch.float32), trained_logprobs(weights, GROUPS, 0.8)
        (loss + logprobs.sum()).backward()
        return isinstance(weights, ForeignWeights), loss.detach(), logprobs.detach(), gradients(network)

    (is_foreign_1, *ours, grad), (is_foreign_2, *theirs, their_grad) = computed_both_ways(monkeypatch, compute)
    assert (is_foreign_1, is_foreign_2) == (False, True)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert_alike(grad, their_grad)


@BOTH_WAYS
@pytest.mark.parametrize("loss", ["clipped", "gspo", "cispo", "dpo", "ppo", "sft"])
def test_both_ways_make_the_same_updates(kind, loss, monkeypatch):
    options = rl(loss={"name": loss}, learning_rate=1e-3, updates_per_round=2)

    def compute():
        network = tiny_network(kind=kind)
        metrics = trainer_of(network, tiny_network(kind=kind, seed=1), options).train(GROUPS)
        return metrics, torch.cat([weight.detach().flatten() for weight in network.parameters()])

    (ours, weights), (theirs, their_weights) = computed_both_ways(monkeypatch, compute)
    start = torch.cat([weight.detach().flatten() for weight in tiny_network(kind=kind).parameters()])
    assert ours == pytest.approx(theirs, rel=1e-3, abs=1e-5)
    assert (weights - their_weights).norm() < 0.02 * (weights - start).norm()
    assert (weights - start).norm() > 0


@pytest.mark.parametrize("kind", FOREIGN)
def test_greedy_decoding_is_that_of_a_full_computation_for_each_token(kind):
    network = tiny_network(kind=kind)
    sessions = TorchEngine(weights_of(network, torch.float32), 0).open(3)
    sampling = Sampling(max_new_tokens=9, end_ids=(3,), temperature=0)
    streams: list[list[int]] = [[], [], []]
    for news in ([PROMPT, PROMPT, [9]], [[11, 12], [13], PROMPT]):
        sessions.extend(range(3), news)
        for row, one in enumerate(sessions.generate(range(3), sampling)):
            stream = [*streams[row], *news[row]]
            expected = []
            while len(expected) < 9 and 3 not in expected:
                expected.append(int(true_logprobs(network, [*stream, *expected])[-1].argmax()))
            assert one.ids == expected
            streams[row] = [*stream, *expected]
            assert sessions.length(row) == len(streams[row])


@pytest.mark.parametrize("training", [FULL, LORA], ids=["full", "lora"])
@pytest.mark.parametrize("kind", FOREIGN)
def test_sampled_logprobs_are_those_of_the_trainer(kind, training):
    if kind == "mamba" and training is LORA:
        pytest.skip("peft adapts no mamba")
    network = perturbed(trainable_copy(tiny_network(kind=kind), training, seed=0))
    sessions = TorchEngine(weights_of(network, torch.float32, for_sampling=True), 0, "v1").open(4)
    sessions.extend(range(4), [PROMPT, [7], PROMPT, [5, 6]])
    first = sessions.generate(range(4), Sampling(9, (3,), 0.8))
    sessions.restart(1)
    sessions.extend([1, 0], [[30, 31], [32]])
    (fresh, more) = sessions.generate([1, 0], Sampling(9, (3,), 0.8))
    streams = [
        tokens(PROMPT, (first[0].ids, [32]), (more.ids, [])),
        tokens([30, 31], (fresh.ids, [])),
        tokens(PROMPT, (first[2].ids, [])),
        tokens([5, 6], (first[3].ids, [])),
    ]
    sampled = [*first[0].logprobs, *more.logprobs, *fresh.logprobs, *first[2].logprobs, *first[3].logprobs]
    groups = [TrainingGroup([TrainingStream(one, [1.0], 0)]) for one in streams]
    scored = trained_logprobs(weights_of(network, torch.float32), groups, 0.8)
    torch.testing.assert_close(scored, torch.tensor(sampled), atol=2e-5, rtol=1e-5)
    assert {one.weight_version for one in first} == {"v1"}


def perturbed(network):
    """Return a network whose adapters change something, as after training."""
    for name, weight in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    return network


def images_and_text():
    """Return a network of Gemma 3 that can also see, which is trained on text alone."""
    eyes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Gemma3Config(
        text_config=tiny_network(kind="gemma3").config, vision_config=eyes | {"image_size": 28, "patch_size": 14}
    )
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config).eval()


@pytest.mark.parametrize("training", [FULL, LORA], ids=["full", "lora"])
def test_a_network_of_text_and_images_is_trained_and_sampled_as_text(training):
    require_computable(images_and_text().config, training, 1)
    network = perturbed(trainable_copy(images_and_text(), training, seed=0))
    weights = weights_of(network, torch.float32)
    require_faithful(weights)
    expected = logprobs_alone(network, GROUPS, 0.8)
    torch.testing.assert_close(trained_logprobs(weights, GROUPS, 0.8), expected, atol=1e-5, rtol=1e-5)
    sessions = TorchEngine(weights_of(network, torch.float32, for_sampling=True), 0).open(1)
    sessions.extend([0], [PROMPT])
    (one,) = sessions.generate([0], Sampling(9, ()))
    table = true_logprobs(network, [*PROMPT, *one.ids])[len(PROMPT) - 1 : -1]
    sampled = table.gather(1, torch.tensor(one.ids)[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(one.logprobs), sampled, atol=2e-5, rtol=1e-5)
    metrics = trainer_of(network, None, rl(loss={"name": "ppo"}, learning_rate=1e-3)).train(GROUPS)
    assert metrics["grad_norm"] > 0
    assert not torch.allclose(logprobs_alone(network, GROUPS, 0.8), expected, atol=1e-3)


def test_streams_that_begin_alike_are_counted_once_each_and_draw_apart():
    sessions = TorchEngine(weights_of(tiny_network(kind="gemma3"), torch.float32), 0).open(4)
    sessions.extend(range(4), [PROMPT] * 4)
    drawn = {tuple(one.ids) for one in sessions.generate(range(4), Sampling(9, ()))}
    assert sessions.num_prefilled == 4 * len(PROMPT)
    assert sessions.num_sampled == 4 * 9
    assert len(drawn) == 4


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_network_is_sampled_with_a_cache_or_says_that_it_is_not(kind):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rows_of(foreign_weights_of(tiny_network(kind=kind), torch.float32))
    slow = [str(one.message) for one in said if "is sampled without a cache" in str(one.message)]
    assert len(slow) == (kind == "mamba")


def test_a_cache_that_changes_logits_is_not_used(monkeypatch):
    weights = foreign_weights_of(tiny_network(kind="gemma3"), torch.float32)
    body, forward = weights.network.base_model, weights.network.base_model.forward
    monkeypatch.setattr(body, "forward", lambda position_ids=None, past_key_values=None, **more: forward(**more))
    with pytest.warns(UserWarning, match="without a cache"):
        rows_of(weights)


@pytest.mark.parametrize("training", [FULL, LORA], ids=["full", "lora"])
@pytest.mark.parametrize("kind", ["gemma3", "phi3", "lfm2", "qwen3-moe"])
def test_it_learns_its_examples(kind, training):
    network = tiny_network(kind=kind)
    before = deepcopy(network.state_dict())
    trained = trainable_copy(network, training, seed=0)
    loss = sft_loss(trained, EXAMPLES, torch.float32).item()
    fit(trained, repeated(EXAMPLES, 256, seed=0), 30, 1e-2)
    assert sft_loss(trained, EXAMPLES, torch.float32).item() < 0.6 * loss
    for name, weight in network.state_dict().items():
        assert torch.equal(weight, before[name]), name


@pytest.mark.parametrize("kind", ["gemma3", "phi3", "lfm2", "qwen3-moe", "opt"])
def test_merged_adapters_change_nothing(kind):
    network = perturbed(trainable_copy(tiny_network(kind=kind), LORA, seed=0))
    ids, plain = torch.tensor([PROMPT]), merged(network)
    assert not any("lora" in name for name in plain.state_dict())
    torch.testing.assert_close(plain(ids).logits, network(ids).logits, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(plain(ids).logits, tiny_network(kind=kind)(ids).logits, atol=1e-2)


ATTENTION = {"q_proj", "k_proj", "v_proj", "o_proj"}


@pytest.mark.parametrize(
    ("kind", "adapted"),
    [
        ("qwen3-moe", ATTENTION),
        ("qwen2-moe", ATTENTION | {"shared_expert_gate"}),
        ("jamba", ATTENTION | {"in_proj", "x_proj", "out_proj"}),
    ],
)
def test_experts_routers_heads_and_maps_that_are_not_called_get_no_adapters(kind, adapted):
    network = perturbed(trainable_copy(tiny_network(kind=kind), LORA, seed=0))
    assert {name.split(".")[-4] for name, _ in network.named_parameters() if "lora_A" in name} == adapted
    ids = torch.tensor([PROMPT])
    torch.testing.assert_close(merged(network)(ids).logits, network(ids).logits, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("loss", [fine_tuning, update])
@pytest.mark.parametrize("kind", ["gemma3", "phi3", "qwen3-moe", "opt"])
@pytest.mark.parametrize("rank", [0, 4])
def test_recomputed_activations_give_the_same_gradients_and_less_is_kept(loss, kind, rank):
    deep = {"num_hidden_layers": 8, **({"layer_types": ["full_attention"] * 8} if kind == "gemma3" else {})}
    plain, lean = (
        trainable_copy(tiny_network(kind=kind, **deep), TrainingRecipe(lora_rank=rank, lora_alpha=8), seed=0)
        for _ in range(2)
    )
    lean.gradient_checkpointing_enable()
    assert bytes_kept(loss, lean) < 0.6 * bytes_kept(loss, plain)
    assert_alike(gradients(lean), gradients(plain))


def test_dropout_is_off_in_training():
    network = tiny_network(kind="opt", dropout=0.5, attention_dropout=0.5).train()
    losses = {sft_loss(network, EXAMPLES, torch.float32).item() for _ in range(3)}
    assert len(losses) == 1


def test_products_in_bfloat16_are_about_those_in_float32():
    network = tiny_network(kind="gemma3")
    exact, narrow = (
        trained_logprobs(weights_of(network, dtype), GROUPS, 0.8) for dtype in (torch.float32, torch.bfloat16)
    )
    assert narrow.dtype == torch.float32
    assert 0 < (exact - narrow).norm() < 0.02 * exact.norm()
    sessions = TorchEngine(weights_of(network, torch.bfloat16, for_sampling=True), 0).open(1)
    sessions.extend([0], [PROMPT])
    (one,) = sessions.generate([0], Sampling(9, ()))
    group = TrainingGroup([TrainingStream(tokens(PROMPT, (one.ids, [])), [1.0], 0)])
    scored = trained_logprobs(weights_of(network, torch.bfloat16), [group], 1.0)
    torch.testing.assert_close(scored, torch.tensor(one.logprobs), atol=0.05, rtol=0)
    assert all(weight.dtype == torch.float32 for weight in network.parameters())


def test_positions_that_depend_on_the_longest_row_are_refused_where_they_do():
    factors = [float(number) for number in range(1, 5)]
    scaled = {"rope_type": "longrope", "rope_theta": 10_000.0, "short_factor": [1.0] * 4, "long_factor": factors}
    network = tiny_network(kind="phi3", rope_parameters=scaled, original_max_position_embeddings=16)
    short = [group_of([tokens(PROMPT, ([20, 21], [])), tokens([5], ([6], []))], [1.0, -1.0])]
    found = trained_logprobs(weights_of(network, torch.float32), short, 1.0)
    torch.testing.assert_close(found, logprobs_alone(network, short, 1.0), atol=1e-5, rtol=1e-5)
    with pytest.raises(InputError, match=r"a stream has 18 tokens, and 'phi3' scales positions .* from 16 tokens on"):
        trained_logprobs(weights_of(network, torch.float32), GROUPS, 1.0)
    sessions = TorchEngine(weights_of(network, torch.float32), 0).open(1)
    sessions.extend([0], [PROMPT])
    with pytest.raises(InputError, match="use shorter prompts"):
        sessions.generate([0], Sampling(20, ()))


@pytest.mark.parametrize(
    ("config", "training", "num_ranks", "reason"),
    [
        (T5Config(), FULL, 1, "no causal language model"),
        (tiny_network(kind="gemma3").config, FULL, 2, "DREAMGYM_NUM_RANKS=1"),
        (tiny_network(kind="mamba").config, LORA, 1, "set training.lora_rank = 0"),
    ],
    ids=["encoder-decoder", "ranks", "adapters"],
)
def test_a_network_that_would_stop_a_run_is_refused_before_it_begins(config, training, num_ranks, reason):
    with pytest.raises(InputError, match=reason) as refusal:
        require_computable(config, training, num_ranks)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", [*FOREIGN, "llama", "qwen2", "qwen3"])
def test_every_other_network_is_accepted(kind):
    require_computable(tiny_network(kind=kind).config, TrainingRecipe(gradient_checkpointing=True), 1)
    require_computable(tiny_network(kind=kind).config, FULL if kind == "mamba" else LORA, 1)


@pytest.mark.parametrize("kind", [*FOREIGN, "llama", "qwen2", "qwen3"])
def test_a_configuration_tells_who_computes_its_networks(kind):
    network = tiny_network(kind=kind)
    assert is_foreign(network_without_values(network.config)) == is_foreign(network) == (kind in FOREIGN)


def test_a_network_that_sees_later_tokens_is_refused_when_it_is_loaded():
    config = BertConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4)
    network = AutoModelForCausalLM.from_config(config).eval()
    require_shape(network)
    with pytest.raises(InputError, match="tokens see later ones"):
        require_faithful(foreign_weights_of(network, torch.float32))


def saved(folder, kind: str):
    """Save a network with the shipped tokenizer in a folder."""
    tokenizer = AutoTokenizer.from_pretrained(SHIPPED / "textworld-tiny")
    network = tiny_network(kind=kind, vocab_size=len(tokenizer))
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return network


@pytest.mark.parametrize("kind", ["gemma3", "qwen3-moe"])
@pytest.mark.parametrize("training", [FULL, LORA], ids=["full", "lora"])
def test_what_is_saved_is_loaded(tmp_path, kind, training):
    saved(tmp_path, kind)
    model = load_model(tmp_path)
    model.network = perturbed(trainable_copy(model.network, training, seed=0))
    model.save(tmp_path)
    again = load_model(tmp_path).network
    torch.testing.assert_close(again(torch.tensor([PROMPT])).logits, model.network(torch.tensor([PROMPT])).logits)


def test_adapters_are_the_same_file_in_every_process(tmp_path):
    network = tiny_network(kind="qwen3-moe")
    add_adapters(network, 4, 8, seed=0)
    network.save_pretrained(tmp_path)
    assert r'"target_modules": ".*\\.(k_proj|o_proj|q_proj|v_proj)"' in (tmp_path / "adapter_config.json").read_text()


def test_weights_that_are_no_safetensors_are_refused(tmp_path):
    network = saved(tmp_path, "gemma3")
    (tmp_path / "model.safetensors").unlink()
    torch.save(network.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"no file named model\.safetensors"):
        load_model(tmp_path)


def test_code_of_a_model_is_never_run(tmp_path):
    saved(tmp_path, "gemma3")
    config = AutoConfig.from_pretrained(tmp_path).to_dict()
    config |= {
        "model_type": "their_own",
        "auto_map": {"AutoConfig": "theirs.Config", "AutoModelForCausalLM": "theirs.Model"},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "theirs.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w')")
    for load in (load_model, load_architecture):
        with pytest.raises(InputError, match="code of its own, which is never run"):
            load(tmp_path)
    assert "run" not in os.listdir(tmp_path)
