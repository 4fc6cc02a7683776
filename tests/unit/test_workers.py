"""Where the parts of a task run."""

from unittest.mock import MagicMock

import pytest
from rich.console import Console

from infra.context import RunContext, run_context, set_run_context
from infra.progress.progress import Display
from infra.settings import Settings
from schemas.recipes.networks import EngineRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
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


def speaking(text: str) -> Reference:
    """Say a text, as a task does whose environment failed."""
    run_context().display.say(text)
    return Reference("", text, "model", {})


def test_what_is_said_elsewhere_is_said_here():
    here = Display(Console(quiet=True))
    here.log = MagicMock()
    running = RunContext("run", "recipe", MagicMock(), here)
    set_run_context(running)
    answer = workers.work(workers._CALL.dump_json(workers._call(speaking, ["it failed"])))
    set_run_context(running)
    assert workers._received(workers._ANSWER.validate_json(answer)).sha256 == "it failed"
    here.log.assert_called_once_with("it failed")
