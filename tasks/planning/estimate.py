"""Estimate the device memory and the time that a recipe needs, before anything starts."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from infra.settings import settings
from models.methods.judges import TaughtJudge, open_judge
from models.methods.losses import open_loss
from models.network.language_model import load_architecture, network_without_values
from models.network.precision import matmul_dtype
from models.network.transformer import is_foreign
from models.training.memory_estimate import Footprint, of_fine_tuning, of_sampling, of_update
from schemas.errors import InputError
from schemas.recipes.networks import EngineRecipe
from schemas.recipes.recipe import Recipe
from tasks.backbones.find_backbone import backbone_folder
from tasks.planning.estimate_time import least_seconds
from tasks.planning.token_lengths import Lengths, lengths
from tasks.running.device import device
from tasks.running.workers import num_processes

_POLICY_UPDATE = "train policy"
_NUM_KEPT = 3
"""Number of models in memory besides the trained one: the previous policy, the start, the experience model. Where adapters
are trained, they share the weights beneath."""
_USABLE = 0.95
"""Usable share of a device's memory."""
_PROCESS = 2**30
"""Bytes of a process without models: Python, torch, stores and trackers."""
_GAPS = 1.25
"""Memory of a stage on a CPU, relative to what its tensors take: the C library keeps the gaps that batches of other
lengths leave. Fourteen updates of SmolLM2-135M on streams of 300 to 700 tokens: 8.6 GiB instead of 6.8."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of the memory on one device, and of the time."""

    device: str
    available: int
    """Bytes of memory that the device has."""
    kept: Footprint
    """Memory of what stays loaded all the time: models; on a CPU also the last state of the optimiser and the process."""
    stages: dict[str, Footprint]
    least_seconds: dict[str, float]
    """Lower bound on the time by stage; see least_seconds."""
    disk: int = 0
    """Bytes of models and optimiser states that a run stores."""
    disk_free: int | None = None
    """Bytes that are free in the folder of the object store; None: it is a bucket."""
    servers: int = 0
    """Bytes of the device that vLLM's servers take, also while a network is trained."""
    workers: int = 0
    """Bytes of the processes that play parts of an evaluation or a round."""

    @property
    def needed(self) -> int:
        """Bytes needed in the stage that needs most."""
        largest = max(stage.total for stage in self.stages.values())
        return self.servers + self.workers + self.kept.total + round(largest * (_GAPS if self.device == "cpu" else 1))

    @property
    def fits(self) -> bool:
        """Whether the device's usable memory holds the needed bytes."""
        return self.needed <= _USABLE * self.available


def estimated(recipe: Recipe, plan: Mapping[str, int]) -> Estimate:
    """Return the memory and the time that a recipe needs on this machine.

    Args:
        recipe: Recipe to estimate.
        plan: Numbers of episodes and steps that the recipe plans.

    Raises:
        InputError: the backbone's configuration or tokenizer is not available.
    """
    backbone, where = recipe.backbone, device()
    if backbone.scratch:
        raise InputError("the backbone's tokenizer will be made of the logs")
    config, format = load_architecture(backbone_folder(backbone) or backbone.model, revision=backbone.revision)
    longest = lengths(recipe, format)
    reviewing = replace(longest, situation=longest.situation + reviewed_tokens(recipe))
    trainings = _trainings(recipe, config, reviewing, matmul_dtype(where))
    stages = _of_each_rank(trainings, recipe)
    trained = trainings[_POLICY_UPDATE]
    own = trained.gradients if recipe.training.lora_rank else trained.weights
    if recipe.engine.name == "torch":
        dream = _dream(recipe, config, reviewing, matmul_dtype(where))
        stages["dream"] = replace(dream, weights=dream.weights + trained.weights - own)
    available = _num_bytes_of(where)
    servers = _servers(recipe, config, where, available)
    if recipe.engine.sleep and servers:
        stages["vLLM's servers"], servers = Footprint(servers, 0, 0, 0), 0
    is_cpu = where == "cpu"
    kept = Footprint(_NUM_KEPT * own, 0, is_cpu * trained.optimizer, is_cpu * _PROCESS)
    return Estimate(
        where,
        available,
        kept,
        stages,
        least_seconds(recipe, plan, config, longest, where),
        disk_of(trained, recipe, plan),
        _disk_free(),
        servers,
        _workers(recipe, stages["dream"].total + 2 * own) if "dream" in stages else 0,
    )


def _of_each_rank(trainings: Mapping[str, Footprint], recipe: Recipe) -> dict[str, Footprint]:
    """Return the footprint of a rank in each training; ranks load the reference policy's trained weights beside their own."""
    num_ranks, update = settings().num_ranks, trainings[_POLICY_UPDATE]
    if num_ranks > 1 and open_loss(recipe.rl.loss).needs_reference:
        update = replace(update, weights=update.weights + update.gradients)
    return {name: stage.of_each(num_ranks) for name, stage in {**trainings, _POLICY_UPDATE: update}.items()}


def disk_of(trained: Footprint, recipe: Recipe, plan: Mapping[str, int]) -> int:
    """Return the maximum bytes of models that a run stores: backbone, start, experience model, clones, policies of rounds.

    Policies stay that are measured on valid tasks, and the last ones; while one is stored, there are states of the
    optimiser of this one, the last and the best.

    Args:
        trained: Footprint of a policy update: what is trained is stored, with the state of the optimiser after a round.
        recipe: Recipe.
        plan: Numbers of rounds and consolidations that the recipe plans.
    """
    rounds = plan["dream_rounds"], recipe.real.num_rounds
    num_measured = sum(-(-each // recipe.dream.calibrate_every) for each in rounds)
    num_policies = min(sum(rounds), num_measured + 2 + recipe.dream.max_staleness)
    num_models = 2 + num_policies + plan["consolidations"]
    return trained.weights + num_models * trained.gradients + min(sum(rounds), 3) * trained.optimizer


def _disk_free() -> int | None:
    store = settings().object_store_uri
    if "://" in store:
        return None
    folder = next(one for one in (Path(store), *Path(store).absolute().parents) if one.exists())
    return shutil.disk_usage(folder).free


def _servers(recipe: Recipe, config: Any, where: str, available: int) -> int:
    """Return the bytes that vLLM takes on the GPU that trains: a share for each server there."""
    if recipe.engine.name != "vllm" or not where.startswith("cuda"):
        return 0
    shares = recipe.training.lora_rank > 0 and not is_foreign(network_without_values(config))
    number = num_servers_on(torch.device(where).index or 0, recipe.engine, shares=shares)
    return round(number * settings().vllm_gpu_share * available)


def num_servers_on(gpu: int, engine: EngineRecipe, *, shares: bool) -> int:
    """Return the number of vLLM's servers on a GPU.

    Args:
        gpu: Index of the GPU.
        engine: Placement of policy and experience model.
        shares: Whether both are adapters that one server takes, where they are placed alike.
    """
    placed = [gpus or (0,) for gpus in (engine.policy_gpus, engine.experience_gpus)]
    return sum(gpu in gpus for gpus in (set(placed) if shares else placed))


def _workers(recipe: Recipe, each: int) -> int:
    """Return the bytes of the processes that play parts side by side, each with a policy and the experience model."""
    number = num_processes(recipe.engine, max(recipe.evaluation.num_shards, recipe.dream.num_shards))
    return number * (_PROCESS + each) if number > 1 else 0


def reviewed_tokens(recipe: Recipe) -> int:
    """Return the maximum number of tokens of the predictions that a taught judge is shown; 0 for other judges."""
    judge = open_judge(recipe.experience.judge)
    return judge.options.num_predictions * recipe.experience.max_new_tokens if isinstance(judge, TaughtJudge) else 0


def _trainings(recipe: Recipe, config: Any, longest: Lengths, dtype: torch.dtype) -> dict[str, Footprint]:
    training, start, experience = recipe.training, recipe.start.sft, recipe.experience
    turn, predicted = (longest.turn_prompt, longest.action), (longest.situation, experience.max_new_tokens)

    def num_rows(lengths: tuple[int, int], tokens_per_update: int) -> int:
        return max(1, min(tokens_per_update, training.tokens_per_batch) // sum(lengths))

    num_cloned, num_learnt = (
        num_rows(turn, start.tokens_per_update),
        num_rows(predicted, experience.sft.tokens_per_update),
    )
    return {
        "start policy": of_fine_tuning(config, training, num_cloned, *turn, dtype),
        "experience model": of_fine_tuning(config, training, num_learnt, *predicted, dtype),
        _POLICY_UPDATE: of_update(
            config, training, num_rows(turn, training.tokens_per_batch), *turn, dtype, open_loss(recipe.rl.loss)
        ),
    }


def _dream(recipe: Recipe, config: Any, longest: Lengths, dtype: torch.dtype) -> Footprint:
    """Return the memory of both engines, with every slot in use."""
    slots = recipe.policy.num_slots
    policy = of_sampling(config, slots, longest.turn_prompt + longest.action, dtype)
    model = of_sampling(config, slots, longest.situation + recipe.experience.max_new_tokens, dtype)
    return Footprint(policy.weights + model.weights, 0, 0, policy.activations + model.activations)


def _num_bytes_of(where: str) -> int:
    if where.startswith("cuda"):
        return torch.cuda.get_device_properties(where).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
