"""ScienceWorld, played for real: its own experiments, in Java."""

import signal
from dataclasses import replace

import psutil
import pytest
from scienceworld import ScienceWorldEnv

from infra.environments.by_name import annotator_of_facts, open_environment
from infra.environments.scienceworld.environment import ScienceworldEnvironment
from infra.settings import settings
from models.rollout.behaviour_policies import collect
from schemas.errors import InputError
from schemas.recipes.environments import ScienceworldRecipe, ScienceworldTask
from schemas.records import Failure
from schemas.state_text import lines_of
from tests.java import needs_java
from tests.predictable import require_predictable
from tests.renamable import require_renamable

pytestmark = [pytest.mark.integration, needs_java]

SHORT: tuple[ScienceworldTask, ...] = ("find-living-thing", "lifespan-longest-lived")


@pytest.fixture(scope="module")
def science():
    environment = ScienceworldEnvironment(ScienceworldRecipe(families=SHORT))
    yield environment
    environment.close()


def test_experts_win_and_the_annotator_says_why(science):
    tasks = science.tasks("train", 4) + science.tasks("test", 2)
    episodes = collect(science, tasks, [0.0], seed=0, max_steps=40)
    assert [one.task.task_id for one in episodes if not one.success] == []
    annotator = annotator_of_facts(ScienceworldRecipe())
    require_renamable(science, annotator, episodes)
    (traces,) = annotator.annotate(episodes[:1])
    assert traces[-1].endswith(" wins.")
    assert f"focus {lines_of(episodes[0].turns[-1].state)['focus']}, moved" in traces[-1]


def test_games_beside_each_other_do_not_mix(science):
    tasks = science.tasks("train", 4)
    together = collect(science, tasks, [0.3], seed=1, max_steps=12)
    require_predictable(together)
    assert len({one.turns[0].state for one in together}) > 1
    for episode in together:
        alone = [science.reset({0: episode.task})[0]]
        alone += [science.step({0: turn.action})[0].state for turn in episode.turns]
        assert alone == [turn.state for turn in episode.turns] + [episode.turns[-1].step.state]


def test_a_state_is_what_is_in_sight_and_not_what_could_be_done(science):
    (task,) = science.tasks("train", 1)
    lines = lines_of(science.reset({0: task})[0])
    assert lines.keys() == {"said", "room", "have", "focus", lines["room"]}
    assert not {"agent", "air"} & set(lines[lines["room"]].split("; "))
    assert 10 < len(science.admissible_actions(0)) < 150


def test_a_focus_is_remembered_and_decides(science):
    """Moving an object to the box without a focus on it wins nothing."""
    (task,) = science.tasks("train", 1)
    outcomes = []
    for forgetful in (False, True):
        science.reset({0: task})
        for _ in range(20):
            if forgetful and science.expert(0).startswith("focus"):
                action = science.near_misses(0)[1]
            else:
                action = science.expert(0)
            step = science.step({0: action})[0]
            if step.done:
                break
        outcomes.append((step.success, lines_of(step.state)["focus"] == "nothing"))
    assert outcomes == [(True, False), (False, True)]


def test_what_is_no_action_changes_nothing_but_what_is_said(science):
    (task,) = science.tasks("train", 1)
    before = lines_of(science.reset({0: task})[0])
    for nonsense in ("fly", "open\x00door", "take " + 100_000 * "x", ""):
        step = science.step({0: nonsense})[0]
        assert lines_of(step.state) | {"said": ""} == before | {"said": ""}
        assert not step.done
    assert "No known action matches that input" in lines_of(science.step({0: "fly"})[0].state)["said"]


def test_a_java_machine_that_dies_fails_its_episodes_and_the_next_ones_go_on(science):
    (task,) = science.tasks("train", 1)
    science.reset({0: task})
    for process in psutil.Process().children(recursive=True):
        if process.name() == "java":
            process.send_signal(signal.SIGKILL)
    step = science.step({0: "look around"})[0]
    assert (step.failure, step.done) == (Failure.ENVIRONMENT, True)
    failures = []
    for _ in range(settings().environment_processes):  # each process has lost its Java machine, and is replaced
        science.reset({0: task})
        failures.append(science.step({0: "look around"})[0].failure)
    assert failures[-1] is None


def test_splits_are_scienceworlds_own(science):
    server = ScienceWorldEnv("", "", 100)
    server.load(SHORT[0], 0)
    official = {
        "train": server.getVariationsTrain(),
        "valid": server.getVariationsDev(),
        "test": server.getVariationsTest(),
    }
    for split, variations in official.items():
        own = [task for task in science.tasks(split, 8) if task.family == SHORT[0]]
        for task, variation in zip(own, variations, strict=False):
            server.load(SHORT[0], variation, "easy")
            assert task.instruction == " ".join(server.getTaskDescription().split())
    server.close()


def test_too_many_tasks_are_refused_with_how_many_there_are(science):
    with pytest.raises(InputError, match=r"ScienceWorld has \d+ train games of '[a-z-]+'"):
        science.tasks("train", 2, first_seed=2 * 5_000)


def test_a_logged_task_that_there_is_not_is_objected_to(science):
    (task,) = science.tasks("train", 1)
    assert science.task_error(task) is None
    impossible = replace(task, task_id=f"{task.family}/train/500", seed=500)
    assert "ask for fewer tasks" in str(science.task_error(impossible))


def test_every_experiment_has_the_tasks_that_a_recipe_asks_for(science):
    recipe = ScienceworldRecipe()
    everything = ScienceworldEnvironment(recipe)
    last = {"train": recipe.num_train_tasks, "valid": recipe.num_valid_tasks, "test": recipe.num_test_tasks}
    for split, count in last.items():
        hardest = recipe.families.index("identify-life-stages-2")
        everything.tasks(split, 1, first_seed=count - len(recipe.families) + hardest)
    everything.close()


def test_chance_is_a_games_own(science):
    """Animals wander; a game played in parallel with another is the same as alone."""
    animals = ScienceworldEnvironment(ScienceworldRecipe(families=("find-animal", "grow-fruit")))
    one, other = animals.tasks("train", 2)
    alone = [animals.reset({0: one})[0], *(animals.step({0: "wait1"})[0].state for _ in range(6))]
    beside = [animals.reset({0: one})[0]]
    animals.reset({1: other})
    for number in range(6):
        beside.append(animals.step({0: "wait1", 1: "wait1"})[0].state)
        if number == 2:
            animals.reset({1: other})
    animals.close()
    assert alone == beside


def test_without_java_it_is_said_what_to_do(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="apt-get install default-jre-headless"):
        open_environment(ScienceworldRecipe(families=SHORT))
