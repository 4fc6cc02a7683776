"""Logical tokens per second of one GRPO update of four groups."""

import tempfile
from collections.abc import Callable
from typing import Any

import torch

from models.network.precision import matmul_dtype
from tests.benchmarks.network import NUM_WORDS, network, rates, tokenizer
from tests.benchmarks.single_turn import COMPLETION, GROUP, PROMPT, prompts


def ours() -> list[float]:
    """Measure our trainer."""
    return rates(our_update(), len(prompts()) * (PROMPT + COMPLETION))


def our_update() -> Callable[[], object]:
    """Return a function that does one round of training with our trainer."""
    from models.methods.advantages.grpo import group_advantages
    from schemas.records import Tokens
    from tests.training import group_of, rl, trainer_of

    rows, mask = prompts(), [False] * PROMPT + [True] * COMPLETION
    tokens = [
        Tokens(prompt + done, mask, [0.0] * len(mask)) for prompt, done in zip(rows, _completions(rows), strict=True)
    ]
    groups = [
        group_of(tokens[i : i + GROUP], group_advantages([1, 0] * (GROUP // 2))) for i in range(0, len(rows), GROUP)
    ]
    trainer = trainer_of(network(), None, rl(updates_per_round=1, learning_rate=1e-6), dtype=matmul_dtype("cpu"))
    return lambda: trainer.train(groups)


def _completions(rows: list[list[int]]) -> list[list[int]]:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(1, NUM_WORDS, (len(rows), COMPLETION), generator=generator).tolist()


def trl() -> list[float]:
    """Measure TRL's trainer: its own loss, bf16 autocast, AdamW."""
    rows = prompts()
    trainer = trl_trainer(network(), len(rows), beta=0.0)
    batch = padded_batch(rows, _completions(rows))
    return rates(lambda: trl_step(trainer, batch), len(rows) * (PROMPT + COMPLETION))


def trl_trainer(model: Any, batch_size: int, **options: Any) -> Any:
    """Return a TRL trainer that is ready to take steps."""
    import trl
    from datasets import Dataset

    environment = options.pop("environment_factory", None)
    words = options.pop("processing_class", None) or tokenizer()
    arguments = trl.GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=batch_size,
        num_generations=GROUP,
        bf16=matmul_dtype("cpu") == torch.bfloat16,
        use_cpu=True,
        report_to=[],
        gradient_checkpointing=False,
        learning_rate=1e-6,
        **options,
    )
    trainer = trl.GRPOTrainer(
        model,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": ["1"] * batch_size}),
        processing_class=words,
        environment_factory=environment,
    )
    trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = 1
    return trainer


def padded_batch(rows: list[list[int]], completions: list[list[int]]) -> dict[str, torch.Tensor]:
    """Return a batch as TRL expects it: prompts padded on the left, completions of one length."""
    longest = max(map(len, rows))
    ones = torch.ones(len(rows), len(completions[0]), dtype=torch.long)
    return {
        "prompt_ids": torch.tensor([[0] * (longest - len(row)) + row for row in rows]),
        "prompt_mask": torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows]),
        "completion_ids": torch.tensor(completions),
        "completion_mask": ones,
        "advantages": torch.tensor([1.0, -1.0] * (len(rows) // 2)),
        "num_items_in_batch": ones.sum(),
    }


def trl_step(trainer: Any, batch: dict[str, torch.Tensor]) -> None:
    """Take one update step."""
    with trainer.accelerator.autocast():
        loss = trainer._compute_loss(trainer.model, dict(batch))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
