"""The public face: one toy run in this process, and everything that Python calls can do with it."""

import json
import signal
from pathlib import Path

import pytest

import dreamgym
from schemas.errors import InputError
from tests.command_line import TOY, dreamgym_here, python_here

pytestmark = pytest.mark.e2e
CHANGES = (
    *TOY,
    "environment.num_train_tasks=4",
    "environment.num_valid_tasks=2",
    "environment.num_test_tasks=4",
    "experience.num_on_policy_episodes=2",
    "start.num_demonstrations=4",
    "dream.num_rounds=1",
    "rl.groups_per_round=2",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory, prefect_server):
    """Let the calls of all tests of this file use one home, and return it."""
    home = tmp_path_factory.mktemp("home")
    with python_here(home, PREFECT_API_URL=prefect_server):
        yield home


@pytest.fixture(scope="module")
def run(home) -> dreamgym.Run:
    before = signal.getsignal(signal.SIGINT)
    done = dreamgym.run("textworld-tiny", CHANGES, until="evaluate")
    assert signal.getsignal(signal.SIGINT) is before
    return done


def test_a_run_has_the_results_that_the_command_shows(home, run):
    shown = dreamgym_here(home, "show", run.id, "--json")
    assert run.record == json.loads(shown.stdout)
    assert {"start", "dream"} < set(run.results)
    assert run.gate["passed"] in (True, False)
    assert run.recipe.environment.num_test_tasks == 4
    assert run.report.is_relative_to(home)
    assert run.report.is_file()


def test_a_run_is_found_by_its_names(run):
    assert dreamgym.find().record == run.record
    assert dreamgym.find(run.id[:-1]).id == run.id
    with pytest.raises(InputError, match="no run is called 'nobody'"):
        dreamgym.find("nobody")


def test_the_same_call_again_finds_nothing_new_and_returns_the_same_run(run, capsys):
    again = dreamgym.run("textworld-tiny", CHANGES, until="evaluate")
    assert again.id == run.id
    assert again.results == run.results
    said = capsys.readouterr()
    assert "nothing is new" in said.err
    assert not said.out
    dreamgym.run("textworld-tiny", CHANGES, until="dream", quiet=True)
    assert capsys.readouterr() == ("", "")


def test_a_policy_plays_an_episode_in_its_dream(run):
    dream, policy = dreamgym.open_dream(run), run.policy()
    state, turns = dream.reset(), []
    while not dream.done:
        turns.append((state, policy.act(dream.task, state, turns)))
        step = dream.step(turns[-1][1])
        state = step.state
    assert len(turns) == run.recipe.environment.max_steps or step.done or step.failure
    with pytest.raises(InputError, match="reset first"):
        dream.step("look")
    assert dream.reset(dream.tasks[1].task_id) == dream.tasks[1].initial_state


def test_a_policy_is_greedy_or_sampled_by_a_seed(run):
    task = dreamgym.open_dream(run).tasks[0]

    def sampled(seed: int) -> list[str]:
        policy = dreamgym.load_policy(run, "start", seed=seed)
        return [policy.act(task, task.initial_state, temperature=2.0) for _ in range(4)]

    policy = dreamgym.load_policy("@latest", "start")
    greedy = {policy.act(asked, task.initial_state) for asked in (task, task.instruction) for _ in range(2)}
    assert len(greedy) == 1
    assert sampled(1) == sampled(1) != sampled(2)


def test_a_dream_begins_where_the_real_environment_does(run):
    dream, real = dreamgym.open_dream(run.id), dreamgym.open_environment("textworld-tiny", CHANGES, num_tasks=4)
    assert [task.task_id for task in real.tasks] == [task.task_id for task in dream.tasks]
    assert real.reset(dream.tasks[2].task_id) == dream.reset(dream.tasks[2])
    assert not real.step("look").done


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["@champion"], "there is no champion"),
        (["nobody"], "no run is called 'nobody'"),
        (["@latest", "sim-to-real"], "has no policy sim-to-real"),
    ],
)
@pytest.mark.usefixtures("run")
def test_a_policy_that_is_not_there_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        dreamgym.load_policy(*arguments)


def test_a_wrong_recipe_starts_nothing(home: Path):
    before = len(json.loads(dreamgym_here(home, "runs", "--json").stdout))
    with pytest.raises(InputError, match="group_size"):
        dreamgym.run("textworld-tiny", {"rl.group_sise": 4})
    with pytest.raises(ValueError, match="'never' is not a valid Stage"):
        dreamgym.run("textworld-tiny", until="never")
    assert len(json.loads(dreamgym_here(home, "runs", "--json").stdout)) == before
