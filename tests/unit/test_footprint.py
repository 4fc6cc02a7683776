"""Estimated memory of training, against the memory it takes."""

from functools import partial

import pytest
import torch
from torch.distributed._tools.mem_tracker import MemTracker

from models.methods.losses import open_loss
from models.network.trained_parameters import make_trainable
from models.training.memory_estimate import Footprint, of_fine_tuning, of_sampling, of_update, peak_of_gradients
from models.training.sft import Example, sft_loss
from schemas.errors import InputError
from schemas.recipes.methods import LossRecipe
from schemas.recipes.networks import EngineRecipe, TrainingRecipe
from schemas.recipes.recipe import Recipe
from tasks.planning.estimate import Estimate, disk_of, num_servers_on
from tests.unit.tiny import tiny_network

NUM_ROWS, PROMPT, TARGET = 16, 96, 32
CLIPPED = open_loss(LossRecipe())
LEAN = TrainingRecipe(gradient_checkpointing=True)


def config(num_hidden_layers=6):
    return tiny_network(num_hidden_layers=num_hidden_layers).config


BATCH = [Example.of(([1] * PROMPT, False), ([1] * TARGET, True))] * NUM_ROWS


def taken(training: TrainingRecipe) -> int:
    """Return the peak bytes that real tensors take on a CPU, as torch's own tracker counts them."""
    network = tiny_network(num_hidden_layers=6)
    make_trainable(network, training, seed=0)
    tracker = MemTracker()
    tracker.track_external(network)
    with tracker:
        for _ in range(2):
            sft_loss(network, BATCH, torch.bfloat16).backward()
    return tracker.get_tracker_snapshot("peak")[torch.device("cpu")]["Total"]


@pytest.mark.parametrize("training", [TrainingRecipe(), LEAN, TrainingRecipe(lora_rank=4, gradient_checkpointing=True)])
def test_it_is_what_real_tensors_take(training):
    found = of_fine_tuning(config(), training, NUM_ROWS, PROMPT, TARGET, torch.bfloat16)
    assert found.total - found.optimizer == pytest.approx(taken(training), rel=0.2)


@pytest.mark.parametrize("kind", ["gemma3", "mistral", "smollm3", "lfm2", "opt", "yarn", "biased"])
@pytest.mark.parametrize("training", [TrainingRecipe(), TrainingRecipe(lora_rank=4, gradient_checkpointing=True)])
def test_it_is_what_networks_of_transformers_take(kind, training):
    network = tiny_network(kind=kind)
    found = of_fine_tuning(network.config, training, NUM_ROWS, PROMPT, TARGET, torch.bfloat16)
    make_trainable(network, training, seed=0)
    real = peak_of_gradients(network, lambda network: sft_loss(network, BATCH, torch.bfloat16))
    assert found.total - found.optimizer == pytest.approx(real, rel=0.2)


def test_a_network_of_experts_has_no_estimate():
    experts = tiny_network(kind="qwen3-moe").config
    with pytest.raises(InputError, match="'qwen3_moe', and its memory cannot be estimated"):
        of_fine_tuning(experts, TrainingRecipe(), NUM_ROWS, PROMPT, TARGET, torch.bfloat16)


def test_weights_and_what_belongs_to_each_of_them_are_counted():
    numbers = sum(weight.numel() for weight in tiny_network(num_hidden_layers=6).parameters())
    full = of_update(config(), TrainingRecipe(), NUM_ROWS, PROMPT, TARGET, torch.bfloat16, CLIPPED)
    assert (full.weights, full.gradients, full.optimizer) == (4 * numbers, 4 * numbers, 8 * numbers)
    adapters = of_update(config(), TrainingRecipe(lora_rank=4), NUM_ROWS, PROMPT, TARGET, torch.bfloat16, CLIPPED)
    assert adapters.weights - full.weights == adapters.gradients == adapters.optimizer / 2
    assert full.of_each(2) == Footprint(2 * numbers, 2 * numbers, 4 * numbers, full.activations)


def test_measured_policies_and_the_last_ones_are_stored_and_three_states_of_the_optimiser():
    recipe = Recipe(name="r", dream={"num_rounds": 12, "calibrate_every": 4}, real={"num_rounds": 2})
    trained = Footprint(weights=100, gradients=10, optimizer=20, activations=1)
    # the backbone; start, experience model, one consolidation, 3 + 1 measured policies, the last and the next; three states
    assert disk_of(trained, recipe, {"dream_rounds": 12, "consolidations": 1}) == 100 + 9 * 10 + 3 * 20
    # without rounds nothing is added
    asleep = Recipe(name="r", dream={"num_rounds": 0}, real={"num_rounds": 0})
    assert disk_of(trained, asleep, {"dream_rounds": 0, "consolidations": 0}) == 100 + 2 * 10


def test_sampling_takes_weights_in_bfloat16_and_a_cache():
    numbers = sum(weight.numel() for weight in tiny_network(num_hidden_layers=6).parameters())
    keys_and_values = 2 * 6 * 2 * 8  # per token: keys and values, layers, heads, head size
    assert of_sampling(config(), 3, 100, torch.bfloat16) == Footprint(2 * numbers, 0, 0, 3 * 100 * keys_and_values * 2)


@pytest.mark.parametrize("footprint", [of_fine_tuning, partial(of_update, loss=CLIPPED)])
def test_fewer_rows_and_checkpointing_take_less(footprint):
    plain, fewer = (
        footprint(config(), TrainingRecipe(), rows, PROMPT, TARGET, torch.bfloat16) for rows in (NUM_ROWS, 4)
    )
    lean = footprint(config(), LEAN, NUM_ROWS, PROMPT, TARGET, torch.bfloat16)
    assert max(fewer.activations, lean.activations) < 0.5 * plain.activations


def test_a_cpu_needs_more_than_its_tensors_take():
    kept, stage = Footprint(30, 0, 20, 10), Footprint(10, 10, 20, 160)
    on = {device: Estimate(device, 1_000, kept, {"start policy": stage}, {}) for device in ("cpu", "cuda")}
    assert {device: estimate.needed for device, estimate in on.items()} == {"cpu": 60 + 250, "cuda": 60 + 200}


@pytest.mark.parametrize(
    ("gpu", "policy_gpus", "experience_gpus", "number", "shared"),
    [
        *[(0, (), (), 2, 1), (1, (), (), 0, 0), (0, (), (1, 2), 1, 1), (2, (), (1, 2), 1, 1), (0, (1,), (2,), 0, 0)],
        *[(1, (1,), (0, 1), 2, 2), (1, (0, 1), (0, 1), 2, 1)],
    ],
)
def test_servers_count_on_the_gpus_that_they_have(gpu, policy_gpus, experience_gpus, number, shared):
    engine = EngineRecipe(policy_gpus=policy_gpus, experience_gpus=experience_gpus)
    assert num_servers_on(gpu, engine, shares=False) == number
    assert num_servers_on(gpu, engine, shares=True) == shared
