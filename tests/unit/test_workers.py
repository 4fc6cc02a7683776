"""Where the parts of a task run."""

import pytest

from infra.settings import Settings
from schemas.recipes.networks import EngineRecipe
from schemas.recipes.recipe import Recipe
from tasks.planning import estimate
from tasks.running import workers


@pytest.fixture
def here(monkeypatch):
    """Return a function that sets the device and the number of threads of this machine."""

    def use(device: str, num_threads: int) -> None:
        monkeypatch.setattr(workers, "device", lambda: device)
        monkeypatch.setattr(workers, "settings", lambda: Settings(num_threads=num_threads))

    return use


@pytest.mark.parametrize(
    ("device", "engine", "num_threads", "expected"),
    [
        ("cpu", "torch", 4, 3),
        ("cpu", "torch", 2, 2),
        ("cpu", "torch", 1, 1),
        ("cpu", "vllm", 4, 1),
        ("cuda", "torch", 4, 1),
    ],
)
def test_three_calls_share_the_cores_but_no_gpu_and_no_servers(here, device, engine, num_threads, expected):
    here(device, num_threads)
    assert workers.num_processes(EngineRecipe(name=engine), 3) == expected


def test_their_memory_is_counted_where_there_are_several(here):
    here("cpu", 4)
    parted = Recipe.model_validate({"name": "parted", "evaluation": {"num_shards": 3}, "dream": {"num_shards": 2}})
    assert estimate._workers(parted, 10) == 3 * (2**30 + 10)
    assert estimate._workers(Recipe(name="whole"), 10) == 0
