"""Lower bound on the time of a recipe: its matrix products, as fast as this machine multiplies."""

import time
from collections.abc import Mapping
from typing import Any

import torch

from models.methods.losses import open_loss
from models.network.precision import matmul_dtype
from models.training.memory_estimate import num_weights
from schemas.recipes.recipe import Recipe
from tasks.planning.token_lengths import Lengths

_FORWARD, _BACKWARD = 2, 4
"""Operations per weight and token (PaLM, arXiv 2204.02311, appendix B, without attention)."""
_MEASURED_FOR_S = 0.3
_SIZE = 2048


def least_seconds(
    recipe: Recipe, plan: Mapping[str, int], config: Any, longest: Lengths, where: str
) -> dict[str, float]:
    """Return the seconds of each stage at least, with all episodes at their longest.

    Attention, sampling of tokens and everything else comes on top.

    Args:
        recipe: Recipe to estimate.
        plan: Numbers of episodes and steps that the recipe plans.
        config: Configuration of the network, as in transformers.
        longest: Longest prompts and outputs.
        where: Device.
    """
    per_second = _speed(where) / num_weights(config)
    return {stage: operations / per_second for stage, operations in _operations(recipe, plan, longest).items()}


def _operations(recipe: Recipe, plan: Mapping[str, int], longest: Lengths) -> dict[str, float]:
    """Return the operations per weight of the network, by stage."""
    start, experience, steps = recipe.start, recipe.experience, plan["max_steps_per_episode"]
    policy, model = longest.turn_prompt + longest.action, longest.situation + experience.max_new_tokens
    learnt = _FORWARD + (_BACKWARD if recipe.training.lora_rank == 0 else _BACKWARD / 2)
    updated = learnt + _FORWARD * (2 if open_loss(recipe.rl.loss).needs_reference else 1)
    demonstrations = start.num_demonstrations or recipe.environment.num_train_tasks
    namings = 1 + start.renamed_copies
    consolidated = _consolidation_epochs(recipe) * recipe.environment.num_train_tasks
    fitted_to = plan["logged_episodes"] * (1 + recipe.backbone.learn_transitions) + plan["own_episodes"]
    fitted = fitted_to * (1 + experience.entity_renaming) * experience.sft.epochs
    trained_on = plan["dreamt_episodes"] + plan["real_training_episodes"]
    evaluated = plan["real_evaluation_episodes"]
    tokens = {
        "start policy": demonstrations * start.sft.epochs * namings * policy * learnt,
        "consolidation": consolidated * namings * policy * learnt,
        "on-policy episodes": plan["own_episodes"] * policy * _FORWARD,
        "experience model": fitted * model * learnt * (not experience.endpoint_model),
        "dream": plan["dreamt_episodes"] * (policy + model) * _FORWARD,
        "train policy": trained_on * recipe.rl.passes_per_round * policy * updated,
        "evaluate": evaluated * (2 * policy + model) * _FORWARD,
    }
    return {stage: steps * operations for stage, operations in tokens.items()}


def _consolidation_epochs(recipe: Recipe) -> float:
    """Return the number of passes that all consolidations of a run take together."""
    return sum(
        one.num_rounds // one.consolidate_every * (one.consolidation_epochs or recipe.start.sft.epochs)
        for one in (recipe.dream, recipe.real)
        if one.consolidate_every
    )


@torch.inference_mode()
def _speed(where: str) -> float:
    """Measure the operations per second of a matrix product."""
    matrix = torch.ones(_SIZE, _SIZE, dtype=matmul_dtype(where), device=where)
    (matrix @ matrix).sum().item()
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < _MEASURED_FOR_S:
        (matrix @ matrix)[0, 0].item()
        count += 1
    return count * 2 * _SIZE**3 / (time.perf_counter() - started)
