"""Methods from another package: found by their entry points, checked when a recipe is loaded, trained with."""

import json
from pathlib import Path

import pytest

from flows.planning.load_recipe import load_recipe
from flows.planning.require_methods import require_methods
from models.training.memory_estimate import of_update
from schemas.errors import RecipeError
from tests.command_line import TOY, changed, dreamgym_here

pytestmark = pytest.mark.integration

_PACKAGE = '''
from pydantic import Field
from torch import nn

from models.methods.advantages import Advantage
from models.methods.losses import Loss
from schemas.recipes.section import Section


class HasteOptions(Section):
    per_turn: float = Field(default=0.1, ge=0)


class Haste(Advantage[HasteOptions]):
    """Short episodes are better than long ones."""

    Options = HasteOptions

    def advantages(self, group, rewards):
        mean = sum(map(len, rewards)) / len(rewards)
        return [[self.options.per_turn * (mean - len(turns)) or 0.01] * len(turns) for turns in rewards]


class Baseline(Loss):
    """Policy gradient over a baseline of its own."""

    def network(self, hidden_size):
        return nn.Linear(hidden_size, 1)

    def rl(self, batch):
        values = batch.network(batch.hidden_NH.detach())[:, 0]
        gains = batch.advantages_N - values.detach()
        return ((values - batch.advantages_N) ** 2 - gains * batch.logprobs_N).sum(), {}
'''
_ENTRY_POINTS = """[dreamgym.methods]
advantage.haste = strange_methods:Haste
loss.baseline = strange_methods:Baseline
"""
CHOSEN = ("rl.advantage.name=haste", "rl.advantage.per_turn=0.2", "rl.loss.name=baseline")


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Path:
    """Write a third-party package as pip leaves it, and return its folder."""
    folder = tmp_path / "packages"
    about = folder / "strange_methods-1.2.dist-info"
    about.mkdir(parents=True)
    (folder / "strange_methods.py").write_text(_PACKAGE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-methods\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(_ENTRY_POINTS)
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.mark.usefixtures("installed")
def test_they_are_listed_with_the_built_in_ones(tmp_path):
    listed = json.loads(dreamgym_here(tmp_path, "methods", "--json").stdout)
    assert {tuple(one) for one in map(dict.keys, listed)} == {("port", "name", "summary", "source")}
    found = {(one["port"], one["name"]): one for one in listed}
    assert found["advantage", "haste"]["summary"] == "Short episodes are better than long ones."
    assert found["loss", "baseline"]["source"] == "strange-methods 1.2"
    assert found["loss", "clipped"]["source"] == "built-in"
    assert {port for port, _ in found} == {
        *("reward", "grouping", "advantage", "replay", "auxiliary"),
        *("loss", "curriculum", "generator", "judge", "behaviour"),
    }


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("rl.advantage.name=hast", r"rl\.advantage\.name: no advantage 'hast' \(did you mean 'haste'\?\)"),
        ("rl.advantage.per_tern=1", r"rl\.advantage\.per_tern: no such field \(did you mean 'per_turn'\?\)"),
        ("rl.advantage.per_turn=-1", r"rl\.advantage\.per_turn: Input should be greater than or equal to 0"),
    ],
)
@pytest.mark.usefixtures("installed")
def test_a_mistake_is_refused_when_the_recipe_is_loaded(change, problem):
    recipe = load_recipe("textworld-tiny", [*CHOSEN, change])
    with pytest.raises(RecipeError, match=problem):
        require_methods(recipe)


@pytest.mark.e2e
@pytest.mark.usefixtures("installed", "shared_prefect")
def test_a_run_trains_with_them_keeps_their_network_and_says_what_they_are(tmp_path):
    home = tmp_path / "home"
    done = dreamgym_here(home, "run", "textworld-tiny", *changed(*TOY, *CHOSEN), "--only", "dream", "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads(done.stdout)
    assert record["recipe"]["rl"]["advantage"] == {"name": "haste", "per_turn": 0.2}
    rounds = [step for step in record["steps"] if step["task"] == "train_policy"]
    assert len(rounds) == 2
    stored = [path.read_bytes() for path in (home / "objects").rglob("*") if path.is_file()]
    assert any(b"own.head.weight" in content[:100_000] for content in stored)


@pytest.mark.usefixtures("installed")
def test_their_code_is_part_of_the_key_of_what_they_train_and_of_nothing_else():
    from tasks.running.cache_key import code_and_packages

    recipe = load_recipe("textworld-tiny", CHOSEN)
    trained, _ = code_and_packages("tasks.learning.train_policy", [recipe])
    dreamt, _ = code_and_packages("tasks.playing.dream", [recipe])
    assert any(name.endswith("strange_methods.py") for name in trained)
    assert not any(name.endswith("strange_methods.py") for name in dreamt)
    assert "models/methods/advantages/grpo.py" not in trained
    assert "models/methods/judges/votes.py" in dreamt


@pytest.mark.usefixtures("installed")
def test_check_counts_their_network():
    import torch

    from models.methods.losses import open_loss
    from schemas.recipes.networks import TrainingRecipe
    from tests.unit.tiny import tiny_network

    config = tiny_network().config
    plain, owning = (
        of_update(
            config, TrainingRecipe(), 4, 8, 4, torch.float32, open_loss(load_recipe("textworld-tiny", some).rl.loss)
        )
        for some in ([], CHOSEN)
    )
    added = 4 * (config.hidden_size + 1)
    assert owning.weights - plain.weights == owning.gradients - plain.gradients == added
    assert owning.optimizer - plain.optimizer == 2 * added
