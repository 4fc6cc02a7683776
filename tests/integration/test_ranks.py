"""Training on several ranks: the same losses, gradients and weights as on one; a dead rank ends them all."""

import json
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch.testing import assert_close

from infra.running.ranks import run_ranks
from infra.settings import Settings
from models.network.language_model import load_model
from models.network.trained_parameters import make_trainable
from models.training import rank
from models.training.checkpoints import Checkpoints
from models.training.jobs import Job, SftJob
from models.training.sft import Example
from schemas.errors import TrainingError
from schemas.recipes.networks import TrainingRecipe
from tests.integration import gradients_on_ranks
from tests.unit.tiny import tiny_network

pytestmark = pytest.mark.integration
TWO = Settings(num_ranks=2, num_threads=2)
FULL, LORA = TrainingRecipe(), TrainingRecipe(lora_rank=4)
NUM_UPDATES = 40
NOISE = 2e-4
"""Maximum distance of equal weights: without the optimizer's state it is 1e-3.

Rounding differs by 3e-5 between one core and two.
"""


@pytest.mark.parametrize(
    ("kind", "training", "stored"),
    [
        ("qwen3", FULL, "float32"),
        ("llama", TrainingRecipe(gradient_checkpointing=True), "float32"),
        ("qwen2", LORA, "bfloat16"),
    ],
)
def test_two_ranks_have_the_losses_and_gradients_of_one(tmp_path, kind, training, stored):
    given = {"kind": kind, "training": training.model_dump(), "stored": stored}
    (tmp_path / rank.JOB).write_text(json.dumps(given))
    run_ranks(TWO, gradients_on_ranks.__name__, tmp_path, print)
    losses, weights = gradients_on_ranks.losses_and_gradients(kind, training, stored)
    with safe_open(tmp_path / rank.TRAINED, "pt") as file:
        assert json.loads(file.metadata()["losses"]) == pytest.approx(losses, rel=1e-5)
    assert_close(load_file(tmp_path / rank.TRAINED), weights, atol=1e-5, rtol=1e-5)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Return the folder of a job with the files of its model; loading needs a tokenizer, whichever it is."""
    backbone = load_model(Path(__file__).parents[2] / "models" / "backbones" / "textworld-tiny")
    backbone.network = tiny_network(num_hidden_layers=1, vocab_size=len(backbone.tokenizer))
    backbone.save(tmp_path / rank.MODEL)
    return tmp_path


def job(num_updates: int = NUM_UPDATES) -> Job:
    examples = [Example.of((list(range(1, 6 + n)), False), (list(range(20, 24 + 3 * n)), True)) for n in range(12)]
    return Job(SftJob(examples, 256, 128, num_updates, 1e-3), FULL, seed=0, checkpoint_every_s=0)


def by_ranks(folder: Path, on_line=lambda line: None) -> dict[str, torch.Tensor]:
    (folder / rank.JOB).write_bytes(job().dumps())
    run_ranks(TWO, rank.__name__, folder, on_line)
    return {name.removeprefix("weight."): tensor for name, tensor in load_file(folder / rank.TRAINED).items()}


def by_one(folder: Path, checkpoints: Path, until=NUM_UPDATES) -> dict[str, torch.Tensor]:
    """Train in this process up to the update `until`, and return the weights."""
    network = load_model(folder / rank.MODEL).network
    make_trainable(network, FULL, seed=0)

    def stop(progress) -> None:
        if progress.update > until:
            raise InterruptedError

    with suppress(InterruptedError):
        job().work.run(network, 0, stop, Checkpoints(checkpoints, every_s=0))
    return dict(network.named_parameters())


def distance(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    """Return the mean absolute difference of the weights.

    Other shapes round otherwise in bfloat16, which Adam amplifies.
    """
    return float(torch.cat([(found[name] - expected[name]).abs().flatten() for name in expected]).mean())


def test_a_dead_rank_ends_all_and_one_alone_ends_what_two_began(folder, tmp_path):
    expected = by_one(folder, tmp_path / "undisturbed")
    started: list[psutil.Process] = []

    def kill_one(line: str) -> None:
        if json.loads(line)["update"] == 15:
            started.extend(p for p in psutil.Process().children(recursive=True) if str(folder) in p.cmdline())
            next(one for one in reversed(started) if one.cmdline()[2:4] == ["-m", rank.__name__]).kill()

    with pytest.raises(TrainingError, match="last checkpoint"):
        by_ranks(folder, kill_one)
    _, alive = psutil.wait_procs(started, timeout=60)
    assert not alive
    kept = max((folder / rank.CHECKPOINTS).glob("*.checkpoint"))
    assert 13 <= int(kept.name[:8]) < NUM_UPDATES, "the ranks go on until the signal reaches one of them"
    assert distance(by_one(folder, folder / rank.CHECKPOINTS), expected) < NOISE


def test_two_end_what_one_began(folder, tmp_path):
    expected = by_one(folder, tmp_path / "undisturbed")
    by_one(folder, folder / rank.CHECKPOINTS, until=20)
    seen: list[int] = []
    found = by_ranks(folder, lambda line: seen.append(json.loads(line)["update"]))
    assert seen[0] == 21
    assert distance(found, expected) < NOISE


def test_what_one_began_it_ends_with_the_very_same_weights(folder, tmp_path):
    expected = by_one(folder, tmp_path / "undisturbed")
    by_one(folder, folder / rank.CHECKPOINTS, until=20)
    assert_close(by_one(folder, folder / rank.CHECKPOINTS), expected, atol=0, rtol=0)


def test_a_checkpoint_that_was_damaged_is_not_gone_on_from(folder):
    by_one(folder, folder / rank.CHECKPOINTS, until=20)
    (kept,) = (folder / rank.CHECKPOINTS).iterdir()
    content = bytearray(kept.read_bytes())
    content[-1] ^= 1
    kept.write_bytes(content)
    undisturbed = by_one(folder, folder / "elsewhere")
    assert_close(by_one(folder, folder / rank.CHECKPOINTS), undisturbed)
