"""Train a stored model in this process or on several ranks, as the settings say. The tasks do not know which."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from infra.context import run_context
from infra.running.gpu_memory import release_gpu_memory
from infra.running.ranks import run_ranks
from infra.settings import settings
from models.network.language_model import LanguageModel
from models.training import rank
from models.training.checkpoints import Checkpoints, load_weights, optimizer_state, optimizer_state_in
from models.training.jobs import Job, PolicyUpdateJob, SftJob
from models.training.sft import Example, SftProgress
from schemas.recipes.networks import SftRecipe, TrainingRecipe
from schemas.records import Reference
from tasks.learning.report_training import SftReport
from tasks.running.artifacts import fetch_model, fetch_reference, get_frozen_model, get_model, get_optimizer_state
from tasks.running.device import use_threads
from tasks.running.shared_checkpoints import shared


def num_updates(examples: Sequence[Example], sft: SftRecipe, epochs: float | None = None) -> int:
    """Return the number of updates that the epochs over these examples take; those of the recipe, if none are given."""
    num_tokens = sum(len(one.ids) for one in examples)
    return max(1, round((epochs or sft.epochs) * num_tokens / sft.tokens_per_update))


def limits_of(examples: Sequence[Example]) -> Counter[str]:
    """Return how often each limit was met by the prompts of examples; copies of an example count once."""
    return Counter(limit for one in {id(one): one for one in examples}.values() for limit in one.limits)


def fine_tuned(
    backbone: Reference,
    examples: list[Example],
    sft: SftRecipe,
    training: TrainingRecipe,
    seed: int,
    stage: str,
    count: int | None = None,
    relu_share: float = 0.0,
) -> LanguageModel:
    """Fine-tune a stored model on examples, resuming from the last checkpoint if the training was interrupted.

    Args:
        backbone: Model to train.
        examples: Examples to learn from.
        sft: Epochs, batch size and learning rate.
        training: Whether all weights are trained, or adapters.
        seed: Seed of the order of examples, and of new adapters.
        stage: Name of the stage in reports.
        count: Number of updates; None: as many as the epochs take.
        relu_share: Share of ReLU in stochastic activations.
    """
    count = count or num_updates(examples, sft)
    work = SftJob(examples, sft.tokens_per_update, training.tokens_per_batch, count, sft.learning_rate, relu_share)
    job = Job(work, training, seed, settings().checkpoint_every_s)
    folder = _folder(job, backbone)
    run_context().display.time.met(stage, limits_of(examples))
    release_gpu_memory()
    with run_context().display.stage(stage) as show, shared(folder / rank.CHECKPOINTS):
        model = get_model(backbone, training, seed)
        report = SftReport(stage, show)
        if settings().num_ranks == 1:
            use_threads()
            work.run(model.network, seed, report, Checkpoints(folder / rank.CHECKPOINTS, job.checkpoint_every_s))
        else:
            fetch_model(backbone, folder / rank.MODEL)
            _by_ranks(job, model, folder, {}, report)
    shutil.rmtree(folder, ignore_errors=True)
    return model


def updated(
    policy: Reference, reference: Reference, update: PolicyUpdateJob, training: TrainingRecipe, stage: str
) -> tuple[LanguageModel, dict[str, Tensor], dict[str, float]]:
    """Train a stored policy for a round, and return it with the state of its optimiser and metrics.

    Args:
        policy: Policy to train, with the state of its optimiser if it was trained before.
        reference: Reference policy.
        update: Updates of the round.
        training: Whether all weights are trained, or the policy's adapters.
        stage: Name of the stage in reports.
    """
    earlier = get_optimizer_state(policy)
    release_gpu_memory()
    with run_context().display.stage(stage):
        model = get_model(policy, training)
        if settings().num_ranks == 1:
            use_threads()
            metrics, trainer = update.run(model.network, get_frozen_model(reference).network, earlier)
            return model, optimizer_state(trainer.optimizer, trainer.own_network), metrics
        job = Job(update, training, 0, settings().checkpoint_every_s)
        folder = _folder(job, policy)
        fetch_model(policy, folder / rank.MODEL)
        fetch_reference(reference, policy, training, folder / rank.REFERENCE)
        state, metrics = _by_ranks(job, model, folder, earlier)
        shutil.rmtree(folder, ignore_errors=True)
        return model, state, metrics


def _folder(job: Job, model: Reference) -> Path:
    """Return the folder of one training, the same at any time and on any machine."""
    digest = hashlib.sha256(replace(job, checkpoint_every_s=0).dumps() + model.sha256.encode()).hexdigest()
    return settings().home / "training" / digest[:16]


def _by_ranks(
    job: Job,
    model: LanguageModel,
    folder: Path,
    optimizer_state: dict[str, Tensor],
    on_update: Callable[[SftProgress], None] = lambda progress: None,
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Run a job on ranks in the folder of its models, load the trained weights, and return the optimiser's state and metrics."""
    (folder / rank.JOB).write_bytes(job.dumps())
    if optimizer_state:
        save_file(optimizer_state, folder / rank.OPTIMIZER)
    run_ranks(settings(), rank.__name__, folder, lambda line: on_update(SftProgress(**json.loads(line))))
    trained = folder / rank.TRAINED
    state = load_file(trained)
    load_weights(model.network, state)
    with safe_open(trained, "pt") as file:
        metrics = json.loads(file.metadata()[rank.METRICS])
    return optimizer_state_in(state), metrics
