"""Served dream: other programs play, and train, in the experience model of a run."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from infra.serving.messages import MAX_ACTION_CHARACTERS
from tests.command_line import COMMAND, TOY, changed, dreamgym, dreamgym_here, environment
from tests.free_ports import free_port
from tests.integration.dream_server import play_with_openenv

_PLAYED_IN_PROCESS = """
from gymnasium.utils.env_checker import check_env
from flows.services.serve_experience_model import gymnasium_dream

dream = gymnasium_dream()
check_env(dream, skip_render_check=True)
first, info = dream.reset(seed=1)
assert dream.reset(seed=1)[0] == first
after, reward, terminated, truncated, info = dream.step("take knife from counter")
print("played", reward, terminated, truncated)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory, prefect_server) -> Path:
    home = tmp_path_factory.mktemp("home")
    to_experience = ("run", "textworld-tiny", *changed(*TOY), "--only", "experience")
    done = dreamgym_here(home, *to_experience, PREFECT_API_URL=prefect_server)
    assert done.returncode == 0, done.stderr
    return home


@contextmanager
def serving(home: Path, token: str, *arguments: str) -> Iterator[str]:
    """Yield the address of a served dream, and check that it ends well at Ctrl-C."""
    port = free_port()
    told = {**environment(home), "DREAMGYM_SERVE_TOKEN": token}
    process = subprocess.Popen([COMMAND, "serve", *arguments, "--port", str(port)], env=told)
    try:
        yield f"ws://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    assert process.returncode == 0


@pytest.mark.e2e
def test_a_dream_of_one_model_is_served_to_whom_has_the_token(home):
    with serving(home, "canary", experience_model(home)) as url, connected(f"{url}/token/canary/ws") as playing:
        for message in ({"type": "reset", "data": {"seed": 0}}, {"type": "step", "data": {"action": "eat meal"}}):
            playing.send(json.dumps(message))
            heard = json.loads(playing.recv(timeout=60))["data"]
    assert heard["observation"]["state"].startswith("- you: kitchen")
    assert (heard["reward"], heard["observation"]["failure"]) == (0.0, None)


@pytest.mark.e2e
def test_a_served_dream_has_as_many_places_as_it_is_told_and_hears_no_more_than_the_longest_action(home):
    longest = {"type": "step", "data": {"action": "\N{HOCHO}" * MAX_ACTION_CHARACTERS}}
    with serving(home, "", "--max-sessions", "1") as url, connected(f"{url}/ws") as playing:
        playing.send(json.dumps(longest))
        assert "reset first" in json.loads(playing.recv(timeout=60))["data"]["message"]
        with connect(f"{url}/ws") as another:
            assert json.loads(another.recv(timeout=60))["data"]["code"] == "CAPACITY_REACHED"
        playing.send(json.dumps(longest) * 2)
        with pytest.raises(ConnectionClosed):
            playing.recv(timeout=60)


@pytest.mark.e2e
def test_64_of_openenvs_own_clients_dream_at_once_to_the_end(home):
    actions = ["look", "take knife from counter", "open fridge", "eat meal"] * 2
    episodes = [{"reset": {"seed": number}, "actions": actions} for number in range(64)]
    with serving(home, "") as url:
        connected(f"{url}/ws").close()
        played = play_with_openenv(url, episodes)
    assert [one["seen"][-1][2] for one in played] == [True] * 64
    named = [{seen["task_id"] for seen, _, _ in one["seen"]} for one in played]
    assert [len(names) for names in named] == [1] * 64, "nobody sees another's episode"
    assert named[:16] == named[16:32], "a seed is a task"
    assert len(set.union(*named)) == 16


def experience_model(home: Path) -> str:
    """Return the start of the digest of the latest run's experience model."""
    shown = json.loads(dreamgym_here(home, "show", "--json").stdout)
    return shown["lineage"]["experience_model"]["__reference__"]["sha256"][:12]


def connected(url: str):
    """Return a connection, as soon as the server accepts one."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        with suppress(OSError):
            return connect(url)
        time.sleep(0.1)
    raise AssertionError(f"nobody at {url}")


@pytest.mark.e2e
def test_a_dream_is_a_gymnasium_environment_in_this_process(home):
    played = subprocess.run(
        [sys.executable, "-c", _PLAYED_IN_PROCESS], env=environment(home), capture_output=True, text=True, check=False
    )
    assert played.returncode == 0, played.stderr
    assert "played 0.0 False False" in played.stdout


@pytest.mark.e2e
def test_trl_trains_in_a_dream(home):
    script = Path(__file__).with_name("trl_in_a_dream.py")
    trained = subprocess.run(
        [sys.executable, script], env=environment(home), capture_output=True, text=True, check=False
    )
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout.splitlines()[-1]) == {"steps": 2, "weights_moved": True, "states_seen": True}


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--host", "0.0.0.0"], "DREAMGYM_SERVE_TOKEN"),
        (["nobody"], "no run is called 'nobody'"),
        (["--port", "{taken}"], "cannot serve at 127.0.0.1"),
    ],
)
def test_what_cannot_be_served_is_told(home, arguments, message):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        told = dreamgym(home, "serve", *(one.format(taken=port) for one in arguments))
    assert told.returncode == 2
    assert message in told.stderr
