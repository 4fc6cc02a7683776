"""The contestants: each measures itself in its own process and prints one number, units per second.

python -m tests.benchmarks.contestants NAME
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

PROMPT, COMPLETION, GROUP, NUM_GROUPS = 128, 64, 8, 4


def model(vocab_size: int = 2048):
    """3.4 million random weights, the same for everybody."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocab_size,
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        eos_token_id=None,
        pad_token_id=0,
        bos_token_id=None,
    )
    return Qwen3ForCausalLM(config).eval()


def prompts() -> list[list[int]]:
    """One prompt per group, repeated for its members."""
    generator = torch.Generator().manual_seed(1)
    groups = torch.randint(1, 2048, (NUM_GROUPS, PROMPT), generator=generator).tolist()
    return [prompt for prompt in groups for _ in range(GROUP)]


def rate(work: Callable[[], object], units: int, repeats: int = 3) -> float:
    """Units per second of the median repeat, after a warm-up."""
    work()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return units / float(np.median(seconds))


def rollout_ours() -> float:
    """Our engine on groups of equal prompts."""
    from models.engine import Sessions, engine_weights
    from schemas.sampling import Sampling

    weights, rows = engine_weights(model()), prompts()

    def work() -> None:
        sessions = Sessions(weights, len(rows), torch.Generator().manual_seed(0), PROMPT)
        sessions.extend(range(len(rows)), rows)
        sessions.generate(range(len(rows)), Sampling(COMPLETION, -1))

    return rate(work, len(rows) * COMPLETION)


def rollout_transformers() -> float:
    """Hugging Face generate with its default cache, in float32 or bfloat16, whichever is faster here."""
    return max(_generate_rate(torch.float32), _generate_rate(torch.bfloat16))


def _generate_rate(dtype: torch.dtype) -> float:
    network, ids = model().to(dtype), torch.tensor(prompts())

    def work() -> None:
        with torch.inference_mode():
            network.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=COMPLETION,
                min_new_tokens=COMPLETION,
                do_sample=True,
                top_k=0,
                top_p=1.0,
                pad_token_id=0,
            )

    return rate(work, len(ids) * COMPLETION)


def update_ours() -> float:
    """One GRPO update in bfloat16, logical tokens."""
    return rate(our_update(), NUM_GROUPS * GROUP * (PROMPT + COMPLETION))


def our_update() -> Callable[[], object]:
    """One GRPO update in bfloat16 of four groups."""
    from models.groups import ScoredGroup
    from models.grpo import GrpoTrainer
    from models.objective import GrpoOptions, group_advantages
    from schemas.records import Tokens

    rows, generator = prompts(), torch.Generator().manual_seed(2)
    completions = torch.randint(1, 2048, (len(rows), COMPLETION), generator=generator).tolist()
    mask = [False] * PROMPT + [True] * COMPLETION
    tokens = [Tokens(p + c, mask, [0.0] * len(mask)) for p, c in zip(rows, completions, strict=True)]
    groups = [
        ScoredGroup(tokens[i : i + GROUP], group_advantages([1, 0] * (GROUP // 2))) for i in range(0, len(rows), GROUP)
    ]
    options = GrpoOptions(updates_per_round=1, kl_coefficient=0.0, learning_rate=1e-6)
    trainer = GrpoTrainer(model(), None, options, torch.bfloat16)
    return lambda: trainer.train(groups)


def update_trl() -> float:
    """The same update by TRL's trainer: its own loss, bf16 autocast, AdamW."""
    import tempfile

    import trl
    from datasets import Dataset
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({str(i): i for i in range(2048)}, unk_token="0"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="0", pad_token="0")
    rows = torch.tensor(prompts())
    arguments = trl.GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        per_device_train_batch_size=len(rows),
        num_generations=GROUP,
        beta=0.0,
        bf16=True,
        use_cpu=True,
        report_to=[],
        gradient_checkpointing=False,
        learning_rate=1e-6,
    )
    trainer = trl.GRPOTrainer(
        model(),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": ["1"] * len(rows)}),
        processing_class=tokenizer,
    )
    trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = 1
    generator = torch.Generator().manual_seed(2)
    ones = torch.ones(len(rows), COMPLETION, dtype=torch.long)
    batch = {
        "prompt_ids": rows,
        "prompt_mask": torch.ones_like(rows),
        "completion_ids": torch.randint(1, 2048, (len(rows), COMPLETION), generator=generator),
        "completion_mask": ones,
        "advantages": torch.tensor([1.0, -1.0] * (len(rows) // 2)),
        "num_items_in_batch": ones.sum(),
    }

    def work() -> None:
        with trainer.accelerator.autocast():
            loss = trainer._compute_loss(trainer.model, dict(batch))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), 1.0)
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()

    return rate(work, len(rows) * (PROMPT + COMPLETION))


NUM_VECTORS, SIZE, NUM_QUERIES = 100_000, 384, 50


def vectors() -> np.ndarray:
    """Clustered unit vectors, as states of tasks are."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2_000, SIZE))
    raw = centres[rng.integers(0, 2_000, NUM_VECTORS)] + 0.5 * rng.normal(size=(NUM_VECTORS, SIZE))
    return (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)


def queries_near(stored: np.ndarray) -> np.ndarray:
    """Vectors near stored ones, none of them stored."""
    rng = np.random.default_rng(1)
    noisy = stored[:NUM_QUERIES] + rng.normal(scale=0.2 / np.sqrt(SIZE), size=(NUM_QUERIES, SIZE))
    return (noisy / np.linalg.norm(noisy, axis=1, keepdims=True)).astype(np.float32)


def retrieval_ours() -> float:
    """Queries per second, one at a time, median; recall@5 against brute force must be at least 0.95."""
    from models.encoders import HashingEncoder
    from models.retrieval import Remembered, ReplayIndex

    stored = vectors()
    index = ReplayIndex(HashingEncoder())
    index.add(stored, [Remembered("", False, "")] * len(stored))
    queries = queries_near(stored)
    exact = np.argsort(-queries @ stored.T, axis=1)[:, :5]
    found = index.search(queries, 5)
    recall = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact, found, strict=True)])
    sys.stderr.write(f"recall@5 {recall:.3f}\n")
    if recall < 0.95:
        raise SystemExit("recall@5 is below its floor of 0.95")
    return 1 / _median_seconds(lambda query: index.search(query[None], 5), queries)


def retrieval_lancedb() -> float:
    """LanceDB's brute force, one query at a time, median."""
    import tempfile

    import lancedb

    stored = vectors()
    table = lancedb.connect(tempfile.mkdtemp()).create_table("t", [{"vector": v} for v in stored])
    return 1 / _median_seconds(
        lambda query: table.search(query).metric("cosine").limit(5).to_arrow(), queries_near(stored)
    )


def slowdown_without_mlflow() -> float:
    """Time of a training step while MLflow is away over that while it is there."""
    from tests.benchmarks.tracking_away import slowdown

    return slowdown()


def overhead() -> float:
    """Share of a default cycle's wall time that is orchestration, tracking and storage."""
    import json
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as home:
        command = [Path(sys.executable).with_name("dreamgym"), "run", "textworld-tiny", "--json"]
        done = subprocess.run(
            command, check=True, env={**os.environ, "DREAMGYM_HOME": home}, capture_output=True, text=True
        )
        return json.loads(done.stdout)["results"]["overhead_share"]


def _median_seconds(search: Callable[[np.ndarray], object], queries: np.ndarray) -> float:
    search(queries[0])
    seconds = []
    for query in queries:
        started = time.perf_counter()
        search(query)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


if __name__ == "__main__":
    print(globals()[sys.argv[1]]())
