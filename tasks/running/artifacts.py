"""Store and fetch models, trajectories and agent tasks by reference; everything is verified when fetched."""

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from infra.context import objects
from models.network.language_model import LanguageModel, load_architecture, load_model
from models.network.lora import ADAPTERS, has_adapters, merged, share_base
from models.network.trained_parameters import trainable_copy
from models.text.prompts import PromptFormat
from schemas.codec import decode_trajectories, encode_trajectories
from schemas.errors import StorageError
from schemas.recipes.digests import digest_of
from schemas.recipes.networks import TrainingRecipe
from schemas.records import AgentTask, Reference, Trajectory
from tasks.running.device import device
from tasks.running.lru import LruCache

_OPTIMIZER_FILE = "optimizer.safetensors"
_ADAPTER_FILE = "adapter_config.json"
_OF_ADAPTERS = (ADAPTERS, _ADAPTER_FILE)
_NOT_OF_BASE = (*_OF_ADAPTERS, _OPTIMIZER_FILE)
_WEIGHTS = ".safetensors"
_models: LruCache[LanguageModel] = LruCache(3)
"""Models stored or fetched last. A trained model replaces the one that it was trained from."""
_optimizer_states: LruCache[dict[str, torch.Tensor]] = LruCache(1)
_trajectories: LruCache[list[Trajectory]] = LruCache(2)


def put_trajectories(trajectories: Sequence[Trajectory], **notes: float | int | str) -> Reference:
    """Store trajectories unchanged, with their tokens."""
    num_transitions = sum(len(t.turns) for t in trajectories)
    counts = {"num_episodes": len(trajectories), "num_transitions": num_transitions}
    reference = objects().put(encode_trajectories(trajectories), "trajectories", **counts, **notes)
    _trajectories.remember(reference, list(trajectories))
    return reference


def get_trajectories(*references: Reference) -> list[Trajectory]:
    """Return the trajectories of all references, in order."""
    return [trajectory for reference in references for trajectory in _trajectories_of(reference)]


def _trajectories_of(reference: Reference) -> list[Trajectory]:
    kept = _trajectories.recall(reference)
    return kept or _trajectories.remember(reference, decode_trajectories(objects().get(reference)))


def put_tasks(tasks: Sequence[AgentTask], **notes: float | int | str) -> Reference:
    """Store agent tasks."""
    plain = [{name: getattr(task, name) for name in AgentTask.__slots__} for task in tasks]
    return objects().put_json(plain, "agent tasks", num_tasks=len(tasks), **notes)


def get_tasks(reference: Reference) -> list[AgentTask]:
    """Return stored agent tasks."""
    return [AgentTask(**plain) for plain in objects().get_json(reference)]


def put_model(
    model: LanguageModel,
    made_from: Reference | None = None,
    optimizer_state: dict[str, torch.Tensor] | None = None,
    **notes: float | int | str,
) -> Reference:
    """Store weights, tokenizer and, if given, the state of the optimiser: safetensors only.

    Model and state are cached as they are, so the caller must not change them afterwards.

    Args:
        model: Model to store.
        made_from: Model that it was trained from, whose stored weights it shares if only adapters were trained.
        optimizer_state: State of the optimiser to continue training with.
        notes: Notes of the reference.

    Raises:
        StorageError: the temporary folder or the store is full, or must not be written.
    """
    over = made_from if has_adapters(model.network) else None
    with tempfile.TemporaryDirectory() as folder:
        _write(model, optimizer_state, Path(folder))
        reference = objects().put_folder(Path(folder), over, num_parameters=model.num_parameters, **notes)
    if made_from is not None:
        _models.take(made_from)
    _models.remember(reference, model)
    if optimizer_state is not None:
        _optimizer_states.remember(reference, optimizer_state)
    return reference


def _write(model: LanguageModel, optimizer_state: dict[str, torch.Tensor] | None, folder: Path) -> None:
    try:
        model.save(folder)
        if optimizer_state is not None:
            save_file(optimizer_state, folder / _OPTIMIZER_FILE)
    except (OSError, SafetensorError) as error:
        raise StorageError(
            f"cannot write a model to {folder.parent}: {error}. Free space there, or set TMPDIR to another folder"
        ) from error


def get_model(reference: Reference, training: TrainingRecipe, seed: int = 0) -> LanguageModel:
    """Return a stored model to train, in full or by adapters; every file is verified before it is loaded."""
    frozen = get_frozen_model(reference)
    return replace(frozen, network=trainable_copy(frozen.network, training, seed))


def get_format(reference: Reference) -> PromptFormat:
    """Return the prompts of a stored model, without loading its weights."""
    weights = [name for name in objects().get_json(reference) if name.endswith(_WEIGHTS)]
    with tempfile.TemporaryDirectory() as folder:
        return load_architecture(objects().get_folder(reference, Path(folder), but=weights))[1]


def fetch_model(reference: Reference, folder: Path) -> None:
    """Write a stored model's files into a folder, each verified, without the state of the optimiser."""
    objects().get_folder(reference, folder, but=(_OPTIMIZER_FILE,))


def fetch_base(reference: Reference, folder: Path) -> None:
    """Write a stored model's files into a folder, without its adapters."""
    objects().get_folder(reference, folder, but=_NOT_OF_BASE)


def fetch_adapters(reference: Reference, folder: Path) -> None:
    """Write the files of a stored model's adapters into a folder, if it has any."""
    objects().get_folder(reference, folder, but=objects().get_json(reference).keys() - {*_OF_ADAPTERS})


def base_digest(reference: Reference) -> str:
    """Return a digest of a stored model's weights beneath its adapters, the same for all adapters over them."""
    files = objects().get_json(reference).items()
    return digest_of({name: sha for name, sha in files if name.endswith(_WEIGHTS) and name not in _NOT_OF_BASE})


def fetch_reference(reference: Reference, policy: Reference, training: TrainingRecipe, folder: Path) -> None:
    """Write a reference policy's files into a folder; its adapters alone, if only in them it differs from the policy."""
    files, others = objects().get_json(reference), objects().get_json(policy)
    differs = any(
        others.get(name) != sha256 for name, sha256 in files.items() if name not in (ADAPTERS, _OPTIMIZER_FILE)
    )
    if differs or not training.lora_rank:
        fetch_model(reference, folder)
    else:
        fetch_adapters(reference, folder)


def fetch_merged_model(reference: Reference, folder: Path) -> None:
    """Write a stored model for an engine without adapter support: adapters are merged into the weights."""
    if objects().get_file(reference, _ADAPTER_FILE) is None:
        fetch_model(reference, folder)
    else:
        model = get_frozen_model(reference)
        replace(model, network=merged(model.network)).save(folder)


def get_frozen_model(reference: Reference) -> LanguageModel:
    """Return a stored model that the caller must not change.

    Models are cached, since every round needs the experience model, its policy and the KL reference.
    """
    return _models.recall(reference) or _models.remember(reference, _fetched(reference))


def _fetched(reference: Reference) -> LanguageModel:
    with tempfile.TemporaryDirectory() as folder:
        fetch_model(reference, Path(folder))
        model = load_model(Path(folder))
    for other in _models.values():
        if has_adapters(model.network) or has_adapters(other.network):
            share_base(model.network, other.network)
    return replace(model, network=model.network.to(device()))


def remove_optimizer_state(model: Reference, kept: Sequence[Reference]) -> None:
    """Remove the state of the optimiser that is stored with a model, unless a kept one has the same."""
    objects().remove_files(model, kept, _OPTIMIZER_FILE)


def forget() -> None:
    """Clear the caches, so that everything is fetched again."""
    for recent in (_models, _optimizer_states, _trajectories):
        recent.forget()


def get_optimizer_state(reference: Reference) -> dict[str, torch.Tensor]:
    """Return the optimiser state stored with a model, which the caller may change; empty if there is none."""
    if (kept := _optimizer_states.take(reference)) is not None:
        return kept
    files = objects().get_json(reference).keys()
    if _OPTIMIZER_FILE not in files:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        objects().get_folder(reference, Path(folder), but=files - {_OPTIMIZER_FILE})
        return load_file(Path(folder) / _OPTIMIZER_FILE)
