"""ALFWorld, played for real: its own games, its own rules, its own expert."""

import json
import lzma
import random
import shutil
import subprocess
import sys
from collections import Counter

import psutil
import pytest

from infra.environments.alfworld.environment import AlfworldEnvironment
from infra.environments.alfworld.files import GameFiles
from infra.environments.alfworld.view import REFUSED
from infra.environments.by_name import admissible_actions_of, annotator_of_facts
from infra.environments.single_games import NOT_BEGUN
from models.rollout.behaviour_policies import collect
from schemas.errors import DataError, InputError
from schemas.recipes.environments import AlfworldFamily, AlfworldRecipe
from schemas.records import AgentTask, Failure
from schemas.state_text import lines_of
from tests.alfworld import require_games
from tests.listed import require_as_listed
from tests.predictable import require_predictable
from tests.renamable import require_renamable

pytestmark = pytest.mark.integration

ALL = AlfworldRecipe()
LOOK: tuple[AlfworldFamily, ...] = ("look_at_obj_in_light",)
"""Family of games in bedrooms, which are small: they begin within a second."""


@pytest.fixture
def data(monkeypatch):
    return require_games(monkeypatch)


@pytest.fixture
def alfworld(data):
    environment = AlfworldEnvironment(ALL.model_copy(update={"families": LOOK}))
    yield environment
    environment.close()


def test_test_tasks_are_all_of_the_held_out_split_dealt_to_the_families(data):
    tasks = AlfworldEnvironment(ALL).tasks("test", 140)
    assert Counter(task.family for task in tasks) == {
        "pick_and_place_simple": 35,
        "pick_clean_then_place_in_recep": 27,
        "pick_cool_then_place_in_recep": 25,
        "pick_two_obj_and_place": 24,
        "pick_heat_then_place_in_recep": 16,
        "look_at_obj_in_light": 13,
    }
    assert [task.family for task in tasks[:6]] == list(ALL.families)
    with pytest.raises(InputError, match=r"141 test tasks were requested, .* ALFWorld has 140"):
        AlfworldEnvironment(ALL).tasks("test", 141)


def test_valid_tasks_are_train_games_that_training_leaves_out(data):
    environment = AlfworldEnvironment(ALL)
    valid = environment.tasks("valid", ALL.num_valid_tasks)
    train = environment.tasks("train", 3553 - ALL.num_valid_tasks)
    names = [task.task_id.partition("/")[2] for task in [*valid, *train]]
    assert len(set(names)) == 3553
    assert environment.tasks("train", 12) == train[:12]


def test_the_expert_wins_and_the_annotator_says_why(alfworld):
    (task,) = alfworld.tasks("test", 1)
    (episode,) = collect(alfworld, [task], [0.0], seed=0, max_steps=40)
    assert episode.success
    assert episode.reward == 1.0
    require_predictable([episode])
    require_renamable(alfworld, annotator_of_facts(ALL), [episode])
    assert lines_of(episode.turns[0].state)["saw"].startswith("You are in the middle of a room.")
    (traces,) = annotator_of_facts(ALL).annotate([episode])
    assert traces[-1].endswith(" asked. desklamp asked. wins.")
    assert collect(alfworld, [task], [0.0], seed=0, max_steps=40) == [episode], "its chance is the game's own"


def test_admissible_actions_are_those_that_the_state_shows_and_others_change_nothing(alfworld):
    (task,) = alfworld.tasks("test", 1)
    before = alfworld.reset({0: task})[0]
    assert all(action.startswith("go to ") for action in alfworld.admissible_actions(0))
    for nonsense in ("fly away", "go to\x00\x1b[2J", "take " + 100_000 * "x", "öffne die Tür", ""):
        step = alfworld.step({0: nonsense})[0]
        assert lines_of(step.state) == lines_of(before) | {"saw": REFUSED}
        assert not step.done
    went = alfworld.step({0: alfworld.admissible_actions(0)[0]})[0]
    assert lines_of(went.state)["saw"].startswith("You arrive at ")


def test_what_a_state_lists_is_accepted_for_real_and_nothing_else(alfworld):
    episodes = collect(alfworld, alfworld.tasks("train", 4), [0.6], seed=0, max_steps=30)
    assert require_as_listed(admissible_actions_of(ALL), episodes) > 10


@pytest.mark.parametrize("family", ["look_at_obj_in_light", "pick_clean_then_place_in_recep"])
def test_what_is_done_once_changes_nothing_that_is_seen(data, family, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    name = next(name for name in GameFiles("valid_seen").names if name.startswith(family))
    anew, translated, read = (
        subprocess.run(
            [sys.executable, "-m", "tests.integration.alfworld_played", name, how], capture_output=True, check=True
        ).stdout
        for how in ("anew", "once", "once")
    )
    assert len([*tmp_path.rglob("translated-*/*.z")]) == 1
    assert anew.count(b"- saw: ") == 20
    assert anew == translated == read


TRANSLATED_TWICE = """
import json
import sys
from infra.environments.alfworld import once

problem = json.load(open(sys.argv[1]))
for _ in range(2):
    translate = once._translated(once.fast_downward.pddl2sas)
    task, translation = translate(problem["pddl_domain"], problem["pddl_problem"])
    actions = [(one.name, [(p.name, p.type_name) for p in one.parameters]) for one in task.actions]
    things = [(one.name, one.type_name) for one in task.objects]
    types = [(one.name, one.supertype_names) for one in task.types]
    print(json.dumps([actions, things, types, list(map(str, task.init)), translation]), file=sys.stderr)
"""
"""What the engine uses of a problem: as it is translated, and as it is when its translation is read."""


def test_a_problem_is_the_same_when_its_translation_is_read(data, tmp_path, monkeypatch):
    files = GameFiles("valid_seen")
    game = files.folder / files.names[0] / "game.tw-pddl"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", TRANSLATED_TWICE, game], capture_output=True, text=True, check=True
    ).stderr.splitlines()
    translated, read = map(json.loads, done[-2:])
    assert len(translated[0]) > 10
    assert translated == read


def test_a_killed_process_fails_its_episode_and_the_next_one_goes_on(alfworld):
    (task,) = alfworld.tasks("test", 1)
    alfworld.reset({0: task})
    for process in psutil.Process().children():
        if "spawn_main" in " ".join(process.cmdline()):
            process.kill()
    step = alfworld.step({0: "look"})[0]
    assert (step.failure, step.done, step.success) == (Failure.ENVIRONMENT, True, False)
    assert step.reasoning == "its process died"
    assert alfworld.reset({0: task})[0].startswith("- saw: You are in the middle of a room.")
    assert alfworld.step({0: "look"})[0].failure is None


def test_a_game_whose_file_is_broken_fails_and_no_other(alfworld, monkeypatch, tmp_path):
    good, bad = alfworld.tasks("test", 2)
    laid_out = tmp_path / "json_2.1.1" / "valid_seen"
    for task in (good, bad):
        name = task.task_id.partition("/")[2]
        shutil.copytree(GameFiles("valid_seen").folder / name, laid_out / name)
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    own = AlfworldEnvironment(ALL.model_copy(update={"families": LOOK}))
    assert {task.task_id for task in own.tasks("test", 2)} == {good.task_id, bad.task_id}
    game = laid_out / bad.task_id.partition("/")[2] / "game.tw-pddl"
    game.write_bytes(game.read_bytes()[:1000])
    states = own.reset({0: good, 1: bad})
    assert states[0].startswith("- saw: You are")
    assert states[1] == NOT_BEGUN
    steps = own.step({0: "look", 1: "look"})
    assert steps[0].failure is None
    assert steps[1].failure == Failure.ENVIRONMENT
    assert "JSONDecodeError" in steps[1].reasoning
    assert own.reset({0: bad}) == {0: NOT_BEGUN}, "and nothing of the game before it"
    own.close()


def test_a_game_that_is_broken_before_anything_began_is_named_with_its_remedy(data, monkeypatch, tmp_path):
    (name, *_) = GameFiles("valid_seen").names
    game = tmp_path / "json_2.1.1" / "valid_seen" / name
    shutil.copytree(GameFiles("valid_seen").folder / name, game)
    (game / "game.tw-pddl").write_bytes(b"{")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.raises(
        DataError, match=r"game\.tw-pddl cannot be read: .*download it again with `alfworld-download --force`"
    ):
        AlfworldEnvironment(ALL).tasks("test", 1)


def test_packed_games_that_are_cut_off_are_an_error_and_leave_nothing(data, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    packed = tmp_path / "valid_seen.jsonl.xz"
    whole = {
        "task": "Your task is to: wait.",
        "task_type": "wait",
        "params": {},
        "problem": random.randbytes(9_999).hex(),
    }
    games = "\n".join(json.dumps({"id": f"valid_seen/{n}/trial", **whole}) for n in range(9)).encode()
    for content in (
        lzma.compress(games[: len(games) // 2]),
        lzma.compress(b'{"id": "valid_seen/x/y", '),
        lzma.compress(b"{}"),
        lzma.compress(b"{}\n" * 99)[:-20],
        b"no",
    ):
        packed.write_bytes(content)
        for _ in range(2):
            with pytest.raises(DataError, match=r"valid_seen\.jsonl\.xz is damaged"):
                GameFiles("valid_seen")
    assert [
        one for one in (tmp_path / "cache" / "dreamgym" / "alfworld").glob("valid_seen-*") if one.suffix == ""
    ] == []


def test_without_games_it_is_said_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    with pytest.raises(InputError, match="run `alfworld-download`, or set ALFWORLD_DATA"):
        AlfworldEnvironment(ALL).tasks("train", 2)


def test_logged_and_generated_tasks_are_looked_at(data):
    environment = AlfworldEnvironment(ALL)
    (task,) = environment.tasks("train", 1)
    assert environment.task_error(task) is None
    assert "has another instruction" in str(environment.task_error(AgentTask(task.task_id, "x", "train", task.family)))
    assert "is called" in str(environment.task_error(AgentTask("train/x/y", "x", "train", task.family)))
    state = "- saw: You are in a room.\n- desk 1: unseen\n- drawer 1: unseen\n- mug 1: is cleaned"

    def generated(instruction: str, state: str = state) -> str | None:
        return environment.task_error(
            AgentTask("g", instruction, "train", task.family, initial_state=state, parent_id=task.task_id)
        )

    assert generated("put a clean mug in desk") is None
    assert generated("look at mug under the desklamp") is None
    assert generated("put a mug in fridge") == "no fridge to go to"
    assert "asks for no such thing" in str(generated("dance"))
    assert "not a line of a state" in str(generated("put a mug in desk", "nonsense"))
