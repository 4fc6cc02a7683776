"""Parity of our GRPO loss and gradients with TRL 1.16's own, on the same batch: 1e-6 and 1e-5.

Parity depends on: sample standard deviation plus 1e-4, logits over temperature before the log-softmax,
observation tokens attended but not trained, and TRL's bias-corrected KL switched off.
"""

import pytest
import torch

from models.methods.advantages.grpo import group_advantages
from models.methods.losses import Loss
from models.methods.losses.cispo import Cispo, CispoOptions
from models.methods.losses.clipped import Clipped, ClippedOptions
from models.methods.losses.gspo import Gspo, GspoOptions
from models.methods.streams import num_units
from models.network.transformer import weights_of
from models.training.trained_logprobs import trained_logprobs
from models.training.trained_tokens import TrainedTokens
from schemas.records import Tokens
from tests.training import group_of
from tests.unit.tiny import tiny_network

trl = pytest.importorskip("trl", reason="pip install 'dreamgym[dev]'")

PROMPTS = [[5, 6, 7], [9, 10, 11, 12, 13]]
REWARDS = [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]]


def completions() -> list[list[tuple[list[int], list[bool]]]]:
    """Return two groups of four completions of uneven length, with holes where the environment answered."""
    generator = torch.Generator().manual_seed(4)
    groups = []
    for _ in PROMPTS:
        group = []
        for _ in range(4):
            length = int(torch.randint(3, 9, (1,), generator=generator))
            ids = torch.randint(1, 60, (length,), generator=generator).tolist()
            group.append((ids, [True, *[i % 4 != 2 for i in range(1, length)]]))
        groups.append(group)
    return groups


def sampled_logprobs(ids: list[int]) -> list[float]:
    """Return log-probabilities of these tokens as some engine might have found them."""
    return [-3.0 - 0.05 * id for id in ids]


def our_loss(network, reference, old, loss: Loss, temperature, groups):
    scored = [
        group_of(
            [
                Tokens(prompt + ids, [False] * len(prompt) + mask, [0.0] * len(prompt) + sampled_logprobs(ids))
                for ids, mask in group
            ],
            group_advantages(rewards),
        )
        for prompt, group, rewards in zip(PROMPTS, groups, REWARDS, strict=True)
    ]
    logprobs, old_logprobs, reference_logprobs = (
        trained_logprobs(weights_of(one, torch.float32), scored, temperature) for one in (network, old, reference)
    )
    tokens = TrainedTokens(scored, logprobs.device)
    summed, _ = loss.rl(tokens.batch(logprobs, old_logprobs.detach(), reference_logprobs.detach(), logprobs, None))
    return summed / num_units(scored, loss.unit)


def trl_loss(network, reference, old, options, temperature, groups, tmp_path, **chosen):
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({str(i): i for i in range(64)}, unk_token="0")),
        eos_token="0",
        pad_token="0",
    )
    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path),
        per_device_train_batch_size=8,
        num_generations=4,
        beta=0.0,
        epsilon=getattr(options, "clip_low", 0.2),
        epsilon_high=getattr(options, "clip_high", None) or options.max_ratio,
        temperature=temperature,
        use_cpu=True,
        bf16=False,
        report_to=[],
        use_bias_correction_kl=False,
        gradient_checkpointing=False,
        **{"loss_type": "dapo", **chosen},
    )
    trainer = trl.GRPOTrainer(
        network,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": ["1"] * 8}),
        processing_class=tokenizer,
    )
    trainer.beta = options.kl_coefficient
    trainer.current_gradient_accumulation_steps = 1
    batch = padded_batch(groups)
    with torch.no_grad():
        for name, source in (("old_per_token_logps", old), ("ref_per_token_logps", reference)):
            batch[name] = reference_logprobs(source, batch, temperature)
    if options.is_corrected:
        trainer.use_vllm = trainer.vllm_importance_sampling_correction = True
        batch["importance_sampling_ratio"] = their_importance(batch, options)
    return trainer._compute_loss(trainer.model, batch)


def their_importance(batch, options):
    """Return the importance ratios as TRL computes them where it generates."""
    mask = batch["completion_mask"] * batch["tool_mask"]
    gaps = (batch["old_per_token_logps"] - batch["sampling_per_token_logps"]) * mask
    if options.importance_correction == "sequence":
        gaps = gaps.sum(-1, keepdim=True)
    return torch.clamp(torch.exp(gaps), max=options.max_importance_ratio)


def padded_batch(groups):
    rows = [(prompt, ids, mask) for prompt, group in zip(PROMPTS, groups, strict=True) for ids, mask in group]
    longest_prompt, longest = max(len(p) for p, _, _ in rows), max(len(c) for _, c, _ in rows)
    left = [longest_prompt - len(p) for p, _, _ in rows]
    right = [longest - len(c) for _, c, _ in rows]
    completion_mask = torch.tensor([[1] * len(c) + [0] * r for (_, c, _), r in zip(rows, right, strict=True)])
    tool_mask = torch.tensor([[int(m) for m in mask] + [0] * r for (_, _, mask), r in zip(rows, right, strict=True)])
    return {
        "prompt_ids": torch.tensor([[0] * n + p for (p, _, _), n in zip(rows, left, strict=True)]),
        "prompt_mask": torch.tensor([[0] * n + [1] * len(p) for (p, _, _), n in zip(rows, left, strict=True)]),
        "completion_ids": torch.tensor([c + [0] * n for (_, c, _), n in zip(rows, right, strict=True)]),
        "completion_mask": completion_mask,
        "tool_mask": tool_mask,
        "sampling_per_token_logps": torch.tensor(
            [sampled_logprobs(c) + [0.0] * r for (_, c, _), r in zip(rows, right, strict=True)]
        ),
        "advantages": torch.tensor([a for rewards in REWARDS for a in group_advantages(rewards)]),
        "num_items_in_batch": (completion_mask * tool_mask).sum(),
    }


def reference_logprobs(network, batch, temperature):
    ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1)
    attention = torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1)
    positions = (attention.cumsum(1) - 1).clamp(min=0)
    length = batch["completion_ids"].shape[1]
    logits = (
        network(input_ids=ids, attention_mask=attention, position_ids=positions).logits[:, -length - 1 : -1]
        / temperature
    )
    return torch.log_softmax(logits, -1).gather(2, batch["completion_ids"][..., None])[..., 0]


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("kl_coefficient", [0.0, 0.05])
@pytest.mark.parametrize(
    ("off_policy", "correction"), [(False, "none"), (True, "none"), (True, "token"), (True, "sequence")]
)
def test_loss_and_gradients_are_trls(tmp_path, temperature, kl_coefficient, off_policy, correction):
    options = ClippedOptions(
        kl_coefficient=kl_coefficient,
        importance_correction=correction,
        max_importance_ratio=1.2,
    )
    require_parity(Clipped(options), temperature, tmp_path, off_policy=off_policy)


@pytest.mark.parametrize("correction", ["none", "sequence"])
@pytest.mark.parametrize(
    ("loss", "chosen"),
    [
        (
            Gspo(GspoOptions(clip_low=0.01, clip_high=0.02)),
            {"loss_type": "grpo", "importance_sampling_level": "sequence"},
        ),
        (Cispo(CispoOptions(max_ratio=1.05)), {"loss_type": "cispo"}),
    ],
    ids=["gspo", "cispo"],
)
def test_other_losses_and_gradients_are_trls(tmp_path, loss, chosen, correction):
    options = loss.options.model_copy(update={"importance_correction": correction, "max_importance_ratio": 1.2})
    require_parity(type(loss)(options), 0.7, tmp_path, off_policy=True, **chosen)


def require_parity(loss, temperature, tmp_path, *, off_policy, **chosen):
    ours, theirs, reference = tiny_network(seed=1), tiny_network(seed=1), tiny_network(seed=2)
    old = tiny_network(seed=1)
    if off_policy:
        with torch.no_grad():
            for parameter in old.parameters():
                parameter.add_(0.02 * torch.randn_like(parameter))
    groups = completions()
    found = our_loss(ours, reference, old, loss, temperature, groups)
    expected = trl_loss(theirs, reference, old, loss.options, temperature, groups, tmp_path, **chosen)
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)
    found.backward()
    expected.backward()
    gradient, wanted = (torch.cat([p.grad.flatten() for p in network.parameters()]) for network in (ours, theirs))
    assert ((gradient - wanted).norm() / wanted.norm()).item() < 1e-5
