"""Games in processes of their own: a game that fails harms no other, and nothing is left of the processes."""

import subprocess
import sys
import time

import psutil
import pytest

from infra.environments.processes import Lost, Processes, Seen
from schemas.records import Failure
from tests.fresh import reset_context
from tests.integration.games import Counting, CountingGames, NeverThere

pytestmark = pytest.mark.integration


@pytest.fixture
def two():
    processes = Processes(Counting, 2, games_per_process=4, timeout_s=10)
    yield processes
    processes.close()


def pids(seen: dict[int, Seen | Lost]) -> dict[int, str]:
    return {slot: one.admissible[0] for slot, one in seen.items() if isinstance(one, Seen)}


def said(seen: dict[int, Seen | Lost]) -> dict[int, str]:
    return {slot: one.said if isinstance(one, Seen) else one.reason for slot, one in seen.items()}


def test_slots_are_dealt_to_processes_and_keep_their_games(two):
    began = two.reset({0: "a", 1: "b", 2: "c"})
    assert said(began) == {0: "a 0", 1: "b 0", 2: "c 0"}
    assert len(set(pids(began).values())) == 2
    went_on = two.step({0: "x", 2: "x"})
    assert said(went_on) == {0: "a 1", 2: "c 1"}
    assert pids(went_on) == {slot: pids(began)[slot] for slot in (0, 2)}


def test_what_a_game_raises_is_the_end_of_its_episode_alone(two):
    began = two.reset({0: "a", 1: "b", 2: "c"})
    after = two.step({0: "raise", 1: "x", 2: "x"})
    assert said(after) == {0: "RuntimeError: as it was told", 1: "b 1", 2: "c 1"}
    assert pids(two.step({1: "x", 2: "x"})) == {slot: pids(began)[slot] for slot in (1, 2)}
    assert pids(two.reset({3: "d"}))[3] not in (pids(began)[0], pids(began)[1]), "the next one has a process of its own"


@pytest.mark.parametrize(("fate", "reason"), [("die", "its process died"), ("hang", "no answer for 12 s")])
def test_a_process_that_dies_or_hangs_takes_its_own_games_with_it(two, fate, reason):
    began = two.reset({0: "a", 1: "b", 2: "c"})
    assert pids(began)[0] == pids(began)[2] != pids(began)[1]
    after = two.step({0: fate, 1: "x", 2: "x"})
    assert said(after) == {0: reason, 1: "b 1", 2: reason}
    again = two.reset({0: "d", 2: "e"})
    assert said(again) == {0: "d 0", 2: "e 0"}
    assert pids(again)[0] != pids(began)[0]


def test_one_that_is_found_dead_is_as_one_that_dies(two):
    began = two.reset({0: "a", 1: "b"})
    psutil.Process(int(pids(began)[0])).kill()
    assert is_gone(pids(began)[0])
    time.sleep(0.5)
    assert said(two.step({0: "x", 1: "x"})) == {0: "its process died", 1: "b 1"}


def test_one_that_hangs_before_it_can_answer_at_all_is_ended(two):
    two.reset({0: "a"})  # so that multiprocessing's resource tracker is there, too
    before = set(psutil.pids())
    hanging = Processes(NeverThere(), 1, timeout_s=2.0)
    assert said(hanging.reset({0: "a"})) == {0: "no answer for 2 s"}
    assert all(map(is_gone, {one.pid for one in psutil.Process().children()} - before))
    hanging.close()


def test_games_that_are_opened_where_others_are_played_and_all_die_are_opened_anew(monkeypatch):
    monkeypatch.setenv("DREAMGYM_ENVIRONMENT_PROCESSES", "1")
    reset_context()
    games = CountingGames(Counting, ["one"], games_per_process=50)
    (task,) = games.tasks("train", 1)
    games.reset({0: task})
    psutil.Process(int(games._seen[0].admissible[0])).kill()
    time.sleep(0.5)
    assert len(games.tasks("train", 3)) == 3
    step = games.step({0: "x"})[0]
    assert (step.failure, step.reasoning) == (Failure.ENVIRONMENT, "its process died")
    games.reset({0: task})
    assert games.step({0: "x"})[0].failure is None
    games.close()
    reset_context()


def is_gone(pid: str | int) -> bool:
    deadline = time.monotonic() + 60
    while psutil.pid_exists(int(pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not psutil.pid_exists(int(pid))


def test_a_process_is_replaced_after_so_many_games_once_those_it_plays_have_ended():
    one = Processes(Counting, 1, games_per_process=3)
    first = set(pids(one.reset({0: "a", 1: "b", 2: "c"})).values())
    second = set(pids(one.reset({3: "d"})).values())
    assert len(first) == len(second) == 1
    assert first != second
    assert said(one.step({0: "win", 1: "win", 2: "x"})) == {0: "a 1", 1: "b 1", 2: "c 1"}
    assert said(one.reset({0: "e"})) == {0: "e 0"}
    assert said(one.step({2: "win", 3: "x"})) == {2: "c 2", 3: "d 1"}
    assert all(map(is_gone, first))
    one.close()
    assert all(map(is_gone, second))


def test_processes_end_with_their_parent_however_that_ends(tmp_path):
    script = (
        "import os, sys\n"
        "from infra.environments.processes import Processes\n"
        "from tests.integration.games import Counting\n"
        "if __name__ == '__main__':\n"
        "    print(Processes(Counting, 1).reset({0: 'a'})[0].admissible[0], flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    file = tmp_path / "parent.py"
    file.write_text(script)
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60, check=False)
    assert is_gone(done.stdout)
