"""One of the ranks of a joint training: `torchrun ... -m models.training.rank FOLDER`.

The folder holds the job and the files of its models. The first rank writes the result there, and reports its progress
on standard output, one line of JSON each time.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors.torch import load_file, save_file
from torch import distributed
from torch.distributed.elastic.multiprocessing.errors import record

from models.network.foreign.requirements import require_trainable
from models.network.language_model import load_model
from models.network.lora import adapters_in
from models.network.sharding import num_ranks, rank, shard
from models.network.trained_parameters import make_trainable
from models.network.transformer import is_foreign
from models.training.adapted_reference import AdaptedReference
from models.training.checkpoints import Checkpoints, state_of
from models.training.jobs import Job, PolicyUpdateJob, SftJob
from models.training.policy_trainer import PolicyTrainer
from models.training.sft import SftProgress
from schemas.recipes.networks import TrainingRecipe

JOB, MODEL, REFERENCE, OPTIMIZER = "job.json", "model", "reference", "optimizer.safetensors"
_CONFIG = "config.json"
CHECKPOINTS, TRAINED = "checkpoints", "trained.safetensors"
METRICS = "metrics"
"""Key of the metrics in the metadata of the trained weights."""
_SILENCE = timedelta(minutes=15)
"""Time without a sign of one rank after which the others give up."""


@record
def main(folder: Path) -> None:
    """Run the folder's job, together with the other ranks."""
    with joined():
        job = Job.loads((folder / JOB).read_bytes())
        network = _loaded(folder / MODEL, job.training)
        make_trainable(network, job.training, job.seed)
        shard(network)
        if isinstance(job.work, SftJob):
            job.work.run(network, job.seed, _tell, Checkpoints(folder / CHECKPOINTS, job.checkpoint_every_s))
            metrics, trained = {}, state_of(network, None)
        else:
            metrics, trainer = _updated(job.work, network, folder)
            trained = state_of(network, trainer.optimizer, trainer.own_network)
        if rank() == 0:
            save_file(trained, folder / TRAINED, {METRICS: json.dumps(metrics)})


@contextmanager
def joined() -> Iterator[None]:
    """Join the other ranks, all on this machine; each has a GPU of its own, if there are any."""
    distributed.init_process_group(timeout=_SILENCE)
    if torch.cuda.is_available():
        torch.cuda.set_device(rank())
    try:
        yield
    finally:
        distributed.destroy_process_group()


def _loaded(folder: Path, training: TrainingRecipe) -> Any:
    """Return a network to train: where adapters are trained, the weights beneath them keep their dtype."""
    network = load_model(folder).network
    if is_foreign(network):
        require_trainable(network, training, num_ranks())
    return network if training.lora_rank else network.float()


def _updated(work: PolicyUpdateJob, network: Any, folder: Path) -> tuple[dict[str, float], PolicyTrainer]:
    earlier = folder / OPTIMIZER
    return work.run(network, _reference(folder / REFERENCE, network), load_file(earlier) if earlier.exists() else {})


def _reference(folder: Path, network: Any) -> Any | AdaptedReference:
    """Return the reference policy: a network of its own, or other adapters where the folder holds no more."""
    if not (folder / _CONFIG).exists():
        return AdaptedReference(network, adapters_in(folder, network))
    reference = load_model(folder).network.requires_grad_(False)
    shard(reference)
    return reference


def _tell(progress: SftProgress) -> None:
    if rank() == 0:
        print(json.dumps(asdict(progress)), flush=True)


def leave() -> NoReturn:
    """End this process at once, after its work is written: on normal exits, running torch threads aborted some."""
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    leave()
