"""MiniWoB++, played for real: its own pages, in Chromium."""

import json
import signal
import subprocess
import time

import psutil
import pytest

from infra.environments.by_name import admissible_actions_of, annotator_of_facts, open_environment
from infra.environments.miniwob.environment import MiniwobEnvironment
from infra.environments.miniwob.experts import EXPERTS
from infra.environments.miniwob.view import text_in
from infra.environments.processes import Lost, Processes, Seen
from infra.settings import settings
from models.rollout.behaviour_policies import collect
from schemas.errors import InputError
from schemas.recipes.environments import MiniwobRecipe, MiniwobTask
from schemas.records import AgentTask, Failure
from tests.command_line import COMMAND, LENIENT_GATE, TOY, changed, dreamgym_here, environment
from tests.listed import require_as_listed
from tests.miniwob import early_page, require_chromium
from tests.predictable import require_predictable
from tests.renamable import require_renamable

pytestmark = pytest.mark.integration

FORMS: tuple[MiniwobTask, ...] = ("login-user", "click-button")


@pytest.fixture(scope="module")
def pages():
    require_chromium()
    environment = MiniwobEnvironment(MiniwobRecipe(families=FORMS))
    yield environment
    environment.close()


def browsers(of: int | None = None) -> list[psutil.Process]:
    """Return all processes of a process's browsers, by default ours; helpers come and go while we look."""
    return [process for process in psutil.Process(of).children(recursive=True) if "chrom" in name_of(process)]


def name_of(process: psutil.Process) -> str:
    """Return the process's name, or an empty string if it is already gone."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def test_there_is_an_expert_for_every_task():
    assert set(EXPERTS) == set(MiniwobTask.__args__)


def test_experts_win_and_the_pages_are_the_same_again():
    require_chromium()
    everything = MiniwobEnvironment(MiniwobRecipe())
    tasks = everything.tasks("train", 2 * len(EXPERTS))
    episodes = collect(everything, tasks, [0.0], seed=0, max_steps=15)
    require_renamable(everything, annotator_of_facts(MiniwobRecipe()), episodes)
    everything.close()
    assert [one.task.task_id for one in episodes if not one.success] == []
    require_predictable(episodes)
    assert len({(one.task.instruction, one.turns[0].state) for one in episodes}) > len(EXPERTS)


def test_a_form_is_filled_in_and_the_annotator_says_why(pages):
    (task,) = pages.tasks("test", 1)
    (episode,) = collect(pages, [task], [0.0], seed=0, max_steps=5)
    name = text_in(episode.actions[0])
    assert f'"{name}"' in task.instruction
    assert f'textbox: "{name}", focused' in episode.turns[0].step.state
    (traces,) = annotator_of_facts(MiniwobRecipe()).annotate([episode])
    assert traces[0].endswith(f'textbox: (empty). "{name}", asked. works.')
    password = text_in(episode.actions[1])
    assert traces[-1].endswith(f'textbox: "{name}", asked. [10] textbox: "{password}", asked. wins.')


def test_splits_and_seeds_are_other_tasks_and_the_same_each_time(pages):
    tasks = pages.tasks("train", 4) + pages.tasks("valid", 4) + pages.tasks("test", 4)
    assert len({task.task_id for task in tasks}) == 12
    assert [task.family for task in tasks[:4]] == [*FORMS, *FORMS]
    assert pages.tasks("train", 2, first_seed=2) == tasks[2:4]
    assert len({task.instruction for task in tasks if task.family == "login-user"}) == 6
    again = MiniwobEnvironment(MiniwobRecipe(families=FORMS))
    assert again.tasks("train", 2) == tasks[:2]
    assert again.reset({0: tasks[0]}) == pages.reset({0: tasks[0]})
    again.close()


def test_what_is_no_action_changes_nothing(pages):
    (task,) = pages.tasks("train", 1)
    before = pages.reset({0: task})[0]
    for nonsense in (
        "fly",
        "click [99]",
        'type [7] "\x00\x1b[2J"',
        'type [7] "\N{GRINNING FACE}"',
        f'type [7] "{100_000 * "x"}"',
        "click [7]\n",
        "press F5",
        "",
    ):
        step = pages.step({0: nonsense})[0]
        assert (step.state, step.done, step.failure) == (before, False, None)
    assert 'textbox: "öß", focused' in pages.step({0: 'type [7] "öß"'})[0].state
    assert 'textbox: "anew", focused' in pages.step({0: 'type [7] "anew"'})[0].state


def test_what_a_page_does_not_have_is_refused_for_real_too(pages):
    episodes = collect(pages, pages.tasks("train", 8), [0.8], seed=0, max_steps=8)
    assert require_as_listed(admissible_actions_of(MiniwobRecipe()), episodes) > 5


def test_a_wrong_answer_loses(pages):
    login, _ = pages.tasks("train", 2)
    pages.reset({0: login})
    (step,) = pages.step({0: "click [11]"}).values()
    assert (step.done, step.success, step.reward, step.failure) == (True, False, 0.0, None)


def test_logged_and_generated_tasks_are_looked_at(pages):
    (task,) = pages.tasks("train", 1)
    assert pages.task_error(task) is None
    assert "asks for something else" in str(pages.task_error(AgentTask(task.task_id, "x", "train", task.family)))
    assert "is called" in str(pages.task_error(AgentTask("login-user/train/x", "x", "train", task.family)))
    began = AgentTask(task.task_id, task.instruction, "train", task.family, initial_state='- [1] text: "other"')
    assert pages.task_error(began) == "it starts in another state"


def test_the_ten_seconds_of_an_episode_are_lifted(pages):
    (task,) = pages.tasks("train", 1)
    pages.reset({0: task})
    time.sleep(11)
    steps = [pages.step({0: pages.expert(0)})[0] for _ in range(3)]  # a name, a password, and the button
    assert [step.success for step in steps] == [False, False, True]


@pytest.mark.parametrize(
    ("fault", "whose"), [(signal.SIGKILL, "chrom"), (signal.SIGSTOP, "chromedriver"), (signal.SIGSTOP, "chromium")]
)
def test_a_browser_that_dies_or_hangs_fails_its_episodes_and_the_next_ones_go_on(pages, fault, whose):
    (task,) = pages.tasks("train", 1)
    pages.reset({0: task})
    told = [process for process in browsers() if name_of(process).startswith(whose)]
    assert told
    for process in told:
        process.send_signal(fault)
    step = pages.step({0: 'type [7] "a"'})[0]
    assert (step.failure, step.done, step.success) == (Failure.ENVIRONMENT, True, False)
    assert "EnvironmentUnavailable" in step.reasoning
    failures = []
    for _ in range(settings().environment_processes):  # each process has lost its browser, and is replaced
        pages.reset({0: task})
        failures.append(pages.step({0: 'type [7] "a"'})[0].failure)
    assert failures[-1] is None


def test_a_page_that_is_said_to_be_loaded_too_early_is_waited_for():
    require_chromium()
    processes = Processes(early_page, 1)
    seen = [processes.reset({0: ("enter-text-2", f"train/{seed}", "train")})[0] for seed in range(10)]
    processes.close()
    assert [one for one in seen if isinstance(one, Lost)] == []
    assert len({one.asked for one in seen if isinstance(one, Seen)}) > 5


def test_nothing_is_left_of_browsers():
    require_chromium()
    before = set(browsers())
    environment = MiniwobEnvironment(MiniwobRecipe(families=FORMS))
    environment.tasks("train", 2)
    started = set(browsers()) - before
    assert started
    environment.close()
    _, left = psutil.wait_procs(started, timeout=60)
    assert left == []


def test_without_a_browser_it_is_said_what_to_do(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="apt-get install chromium chromium-driver"):
        open_environment(MiniwobRecipe(families=("click-test",)))


@pytest.mark.e2e
def test_a_whole_cycle_runs_in_a_browser_though_all_browsers_die_amid_it(tmp_path, prefect_server):
    require_chromium()
    home = tmp_path / "home"
    pages = ('environment.families=["click-test-2", "enter-text"]', "environment.max_steps=6")
    few = ("environment.num_train_tasks=8", "dream.num_rounds=1", "rl.groups_per_round=2")
    command = [COMMAND, "run", "miniwob-tiny", *changed(*TOY, *LENIENT_GATE, *pages, *few)]
    said, killed = "", list[psutil.Process]()
    with subprocess.Popen(
        command,
        env=environment(home) | {"PREFECT_API_URL": prefect_server},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        for line in run.stdout or ():
            said += line
            if not killed and " logs: " in line:
                killed = browsers(run.pid)
                for process in killed:
                    process.kill()
    assert killed, said
    assert run.returncode == 0, said
    shown = json.loads(dreamgym_here(home, "show", "--json").stdout)
    # A fast machine has logged all episodes by its first line, and then misses the browsers in its next stage.
    assert any(failures.get(Failure.ENVIRONMENT) for failures in shown["stage_failures"].values())
    assert set(shown["lineage"]) >= {"backbone", "start", "experience_model", "dream", "sim_to_real"}
