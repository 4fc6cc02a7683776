"""How tasks keep models and trajectories: everything by reference, everything verified when fetched."""

import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load, save_file

from infra.doors import objects
from infra.settings import settings
from models.adapters import has_adapters, merged, trainable_copy
from models.backbone import LanguageModel, load_model
from schemas.codec import decode_trajectories, encode_trajectories
from schemas.recipe import TrainingRecipe
from schemas.records import AgentTask, Reference, Trajectory

_OPTIMIZER_FILE = "optimizer.safetensors"
_NUM_REMEMBERED = 3
_models: OrderedDict[str, LanguageModel] = OrderedDict()
"""By digest, the ones that were used last; what was trained takes the place of what it was made from."""


def put_trajectories(trajectories: Sequence[Trajectory], **notes: float | int | str) -> Reference:
    """Store trajectories as they are, tokens and all."""
    num_transitions = sum(len(t.turns) for t in trajectories)
    counts = {"num_episodes": len(trajectories), "num_transitions": num_transitions}
    return objects().put(encode_trajectories(trajectories), "trajectories", **counts, **notes)


def get_trajectories(*references: Reference) -> list[Trajectory]:
    """The trajectories of all references, in order."""
    return [t for reference in references for t in decode_trajectories(objects().get(reference))]


def put_tasks(tasks: Sequence[AgentTask], **notes: float | int | str) -> Reference:
    """Store agent tasks."""
    plain = [{name: getattr(task, name) for name in AgentTask.__slots__} for task in tasks]
    return objects().put_json(plain, "agent tasks", num_tasks=len(tasks), **notes)


def get_tasks(reference: Reference) -> list[AgentTask]:
    """Stored agent tasks."""
    return [AgentTask(**plain) for plain in objects().get_json(reference)]


def put_model(
    model: LanguageModel,
    made_from: Reference | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    **notes: float | int | str,
) -> Reference:
    """Store weights, tokenizer and, if given, the state of the optimiser: safetensors only. Nobody may change it then.

    Args:
        model: To store.
        made_from: The model it was trained from, whose weights are its own if only adapters were trained.
        optimizer: To go on with.
        notes: Of the reference.
    """
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder))
        if optimizer is not None:
            save_file(_optimizer_tensors(optimizer), Path(folder) / _OPTIMIZER_FILE)
        over = made_from if has_adapters(model.network) else None
        reference = objects().put_folder(Path(folder), over, num_parameters=model.num_parameters, **notes)
    if made_from is not None:
        _models.pop(made_from.sha256, None)
    _remember(reference, model)
    return reference


def get_model(reference: Reference, training: TrainingRecipe, seed: int = 0) -> LanguageModel:
    """A stored model to train, all of it or adapters, every file verified before it is loaded."""
    frozen = get_frozen_model(reference)
    network = trainable_copy(frozen.network, training.lora_rank, training.lora_alpha, seed)
    if training.gradient_checkpointing and not network.is_gradient_checkpointing:
        network.gradient_checkpointing_enable()
    return replace(frozen, network=network)


def fetch_model(reference: Reference, folder: Path) -> None:
    """Write a stored model's files into a folder, every one verified."""
    objects().get_folder(reference, folder, but=_OPTIMIZER_FILE)


def fetch_merged_model(reference: Reference, folder: Path) -> None:
    """The same for an engine that knows no adapters: they are added to the weights."""
    model = get_frozen_model(reference)
    if has_adapters(model.network):
        replace(model, network=merged(model.network)).save(folder)
    else:
        fetch_model(reference, folder)


def get_frozen_model(reference: Reference) -> LanguageModel:
    """A stored model that nobody changes. Every round needs the experience model, its policy and the KL reference."""
    if reference.sha256 not in _models:
        _remember(reference, _fetched(reference))
    _models.move_to_end(reference.sha256)
    return _models[reference.sha256]


def _fetched(reference: Reference) -> LanguageModel:
    with tempfile.TemporaryDirectory() as folder:
        fetch_model(reference, Path(folder))
        model = load_model(Path(folder))
    return replace(model, network=model.network.to(_device()))


def _remember(reference: Reference, model: LanguageModel) -> None:
    _models[reference.sha256] = model
    if len(_models) > _NUM_REMEMBERED:
        _models.popitem(last=False)


def forget_models() -> None:
    """Let every model be fetched anew."""
    _models.clear()


def _device() -> str:
    return settings().device or ("cuda" if torch.cuda.is_available() else "cpu")


def resume_optimizer(optimizer: torch.optim.Optimizer, reference: Reference) -> None:
    """Load the optimiser state that was stored with a model; a model without one starts afresh."""
    if stored := objects().get_file(reference, _OPTIMIZER_FILE):
        _restore(optimizer, load(stored))


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{index}.{name}": torch.as_tensor(value) for index, slots in state.items() for name, value in slots.items()
    }


def _restore(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def use_threads() -> None:
    """Let the networks use as many threads as the settings say."""
    torch.set_num_threads(settings().num_threads)
