"""Environments from other packages: found by an entry point, pinned to the version that is installed."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from infra.environments import template
from infra.environments.by_name import annotator_of_facts, open_environment
from infra.environments.single_games import NOT_BEGUN, Game
from models.rollout.behaviour_policies import collect
from schemas.recipes.environments import PluginRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Failure
from tests.command_line import TOY, changed, dreamgym_here, environment

pytestmark = pytest.mark.integration
RECIPE = PluginRecipe(name="treasures", families=("2", "3"))

_PACKAGE = """
from infra.environments.template import Treasures

class Deeper(Treasures):
    def instruction(self, split, family, seed):
        return f"dig {self._options['depth']} deep {split} {seed}"
"""


def test_the_template_is_a_short_read():
    assert len(Path(template.__file__).read_text().splitlines()) < 60


def test_the_template_is_an_environment_whose_expert_wins_and_whose_annotator_says_why():
    treasures = open_environment(RECIPE)
    tasks = treasures.tasks("train", 6)
    assert [task.family for task in tasks] == ["2", "3"] * 3
    assert len({task.task_id for task in tasks + treasures.tasks("valid", 6)}) == 12
    episodes = collect(treasures, tasks, [0.0], 0, 10)
    assert all(episode.success for episode in episodes)
    (traces, *_) = annotator_of_facts(RECIPE).annotate(episodes)
    assert traces[-1] == "wins."
    assert all(treasures.task_error(episode.task_as_it_began) is None for episode in episodes)
    noisy = collect(treasures, tasks * 5, [1.0], 0, 10)
    assert not all(episode.success for episode in noisy)


def test_one_that_raises_fails_its_own_episode(monkeypatch):
    treasures = open_environment(RECIPE)
    treasures.reset(dict(enumerate(treasures.tasks("train", 2))))
    broken: Game = treasures._games[0]
    monkeypatch.setattr(broken, "act", lambda action: 1 / 0)
    steps = treasures.step({0: "open", 1: "open"})
    assert (steps[0].failure, steps[1].failure) == (Failure.ENVIRONMENT, None)
    assert "ZeroDivisionError" in steps[0].reasoning


def test_one_that_cannot_say_its_state_fails_its_own_episode_and_is_closed(monkeypatch):
    treasures = open_environment(RECIPE)
    tasks = dict(enumerate(treasures.tasks("train", 2)))
    before = treasures.reset(tasks)
    monkeypatch.setattr(treasures._games[0], "state", lambda: 1 / 0)
    steps = treasures.step({0: "look", 1: "look"})
    assert (steps[0].failure, steps[1].failure) == (Failure.ENVIRONMENT, None)
    assert steps[0].state == before[0]
    closed = []

    def close(game: Game) -> None:
        closed.append(game)

    monkeypatch.setattr(template.TreasureGame, "close", close)
    monkeypatch.setattr(template.TreasureGame, "state", lambda game: 1 / 0)
    assert treasures.reset({1: tasks[1]}) == {1: NOT_BEGUN}
    assert len(closed) == 2, "the game before it, and the one that could not say its state"
    assert "ZeroDivisionError" in treasures.step({1: "look"})[1].reasoning


def test_tasks_of_a_log_are_looked_at():
    treasures = open_environment(RECIPE)
    (task,) = treasures.tasks("train", 1)
    assert treasures.task_error(task) is None
    assert treasures.task_error(replace(task, family="9")) == "family '9' is not in the recipe"
    assert "has another instruction" in str(treasures.task_error(replace(task, instruction="find silver")))
    generated = replace(task, parent_id="log", initial_state="- red box: closed")
    assert treasures.task_error(generated) is None
    assert treasures.task_error(replace(generated, initial_state="")) == "it has no first state"


def test_a_name_that_nobody_brings_and_a_version_that_is_not_there_are_refused():
    with pytest.raises(ValidationError, match=r"'tresures' is not known: there are alfworld, .*, treasures, webshop"):
        Recipe.model_validate({"name": "mine", "environment": {"name": "tresures"}})
    with pytest.raises(ValidationError, match=r"wanted from version 9\.9"):
        PluginRecipe(name="treasures", package_version="9.9")


@pytest.fixture
def installed(tmp_path) -> Path:
    """Write a third-party package as pip leaves it, and return its folder."""
    (tmp_path / "diggers.py").write_text(_PACKAGE)
    about = tmp_path / "diggers-1.2.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: diggers\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text("[dreamgym.environments]\ndeeper = diggers:Deeper\n")
    return tmp_path


def test_one_of_another_package_is_found_by_name_and_told_its_options(installed):
    asked = "from infra.environments.by_name import *; from schemas.recipes.environments import *; "
    asked += "r = PluginRecipe(name='deeper', families=('2',), options={'depth': 7}); "
    asked += "print(r.package_version, open_environment(r).tasks('test', 1)[0].instruction)"
    said = subprocess.run(
        [sys.executable, "-c", asked],
        env={**environment(installed), "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "1.2 dig 7 deep test 0\n"


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_a_whole_cycle_runs_in_the_template(tmp_path):
    recipe = tmp_path / "treasures.toml"
    recipe.write_text('name = "treasures"\n[environment]\nname = "treasures"\nfamilies = ["2", "3"]\n')
    done = dreamgym_here(tmp_path / "home", "run", str(recipe), *changed(*TOY))
    assert done.returncode in (0, 3), done.stderr
    assert "starting policy" in done.stdout
