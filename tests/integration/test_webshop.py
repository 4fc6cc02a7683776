"""WebShop's protocol against a small shop that speaks it; the real server was not available."""

import socket

import pytest

from infra.environments.by_name import annotator_of_facts, open_environment
from infra.environments.webshop import server as shop_protocol
from infra.environments.webshop.environment import WebshopEnvironment
from infra.environments.webshop.server import WebshopServer
from models.rollout.behaviour_policies import collect
from schemas.errors import EnvironmentUnavailable, InputError
from schemas.recipes.environments import WebshopRecipe
from schemas.records import AgentTask, Failure
from schemas.state_text import lines_of
from tests.fresh import reset_context
from tests.integration.shop_server import shop
from tests.predictable import require_predictable

pytestmark = pytest.mark.integration


@pytest.fixture
def server():
    with shop() as server:
        yield server


@pytest.fixture
def webshop(server):
    return WebshopEnvironment(WebshopServer(server.url))


def test_goals_are_split_by_their_numbers_and_say_what_is_asked_for(webshop):
    train, valid, test = (webshop.tasks(split, 3) for split in ("train", "valid", "test"))
    assert [task.seed for task in train + valid + test] == [1500, 1501, 1502, 500, 501, 502, 0, 1, 2]
    asked = "Find me a cotton dress with color: red, and size: small, and price lower than 60.00 dollars"
    assert test[0] == AgentTask("test/0", asked, "test", "webshop", 0)
    with pytest.raises(InputError, match=r"501 test tasks were requested.* WebShop has 500"):
        webshop.tasks("test", 501)


def test_a_shopper_by_rule_buys_what_fits_and_the_annotator_says_what_it_chose(webshop):
    (task,) = webshop.tasks("test", 1)
    (episode,) = collect(webshop, [task], [0.0], seed=0, max_steps=15)
    require_predictable([episode])
    assert episode.actions == [
        "search[a cotton dress with color: red, and size: small]",
        "click[b000000000]",
        "click[red]",
        "click[small]",
        "click[buy now]",
    ]
    assert episode.reward == 1.0
    assert lines_of(episode.turns[1].state) == {
        "saw": "Back to Search | Page 1 (Total results: 3) | B000000000 | cotton dress | $24.99 | B000000001 | wool dress "
        "| $24.99 | B000000002 | silk dress | $24.99",
        "click": "back to search | b000000000 | b000000001 | b000000002",
    }
    (traces,) = annotator_of_facts(WebshopRecipe()).annotate([episode])
    assert traces[0] == "accepted. works."
    assert traces[-1] == f"accepted. chosen: red; small. asked: {task.instruction}. wins."


def test_what_fits_in_part_is_no_success(webshop):
    (task,) = webshop.tasks("test", 1)
    webshop.reset({0: task})
    for action in ("search[cotton dress]", "click[b000000000]", "click[green]"):
        assert not webshop.step({0: action})[0].done
    step = webshop.step({0: "click[buy now]"})[0]
    assert (step.done, step.success, step.reward, step.failure) == (True, False, 0.0, None)


@pytest.mark.parametrize(
    "action", ["", "dance", "click[moon]", "search[]", "click[\x00]", "x" * 100_000, "[SEP]", "öffne"]
)
def test_what_the_shop_does_not_know_changes_nothing(webshop, action):
    state = webshop.reset({0: webshop.tasks("test", 1)[0]})[0]
    step = webshop.step({0: action})[0]
    assert (step.state, step.done, step.failure) == (state, False, None)


def test_a_lost_session_fails_its_own_episode(webshop, server):
    webshop.reset(dict(enumerate(webshop.tasks("test", 3))))
    server.lost.add(webshop._visits[1].session)
    steps = webshop.step(dict.fromkeys(range(3), "search[coat]"))
    assert [step.failure for step in steps.values()] == [None, Failure.ENVIRONMENT, None]
    assert "500" in steps[1].reasoning
    states = webshop.reset(dict(enumerate(webshop.tasks("test", 3))))
    assert all(state.startswith("- saw: WebShop") for state in states.values()), "in a session of its own again"


def test_a_shop_that_cannot_be_entered_fails_its_episodes_and_no_run(server, webshop):
    tasks = webshop.tasks("test", 2)
    gone = WebshopEnvironment(WebshopServer("http://127.0.0.1:9"))
    episodes = collect(gone, tasks, [0.0, 1.0], seed=0, max_steps=5)
    assert [episode.failure for episode in episodes] == [Failure.ENVIRONMENT] * 2
    assert "is it up" in episodes[0].turns[-1].step.reasoning


def test_a_shop_that_says_nothing_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr(shop_protocol, "_TIMEOUT_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gone = WebshopEnvironment(WebshopServer(f"http://127.0.0.1:{silent.getsockname()[1]}"))
        with pytest.raises(EnvironmentUnavailable, match=r"did not answer POST /create .*ReadTimeout"):
            gone.tasks("test", 1)


def test_what_is_no_text_that_could_be_sent_fails_its_episode(webshop):
    webshop.reset(dict(enumerate(webshop.tasks("test", 2))))
    steps = webshop.step({0: "search[\ud800]", 1: "search[coat]"})
    assert [step.failure for step in steps.values()] == [Failure.ENVIRONMENT, None]


def test_without_a_server_it_is_said_what_to_do(monkeypatch, server, webshop):
    reset_context()
    monkeypatch.delenv("DREAMGYM_ENVIRONMENT_URL", raising=False)
    with pytest.raises(InputError, match="set DREAMGYM_ENVIRONMENT_URL"):
        open_environment(WebshopRecipe())
    reset_context()
    with pytest.raises(EnvironmentUnavailable, match=r"http://127.0.0.1:9 did not answer POST /create .* is it up"):
        WebshopEnvironment(WebshopServer("http://127.0.0.1:9")).tasks("test", 1)


def test_logged_and_generated_tasks_are_looked_at(webshop):
    (task,) = webshop.tasks("train", 1)
    assert webshop.task_error(task) is None
    other = AgentTask(task.task_id, "x", "train", task.family, task.seed)
    assert webshop.task_error(other) == "goal 1500 has another instruction"
    assert "is called" in str(webshop.task_error(AgentTask("test/7", "x", "test", task.family, 8)))
    made = AgentTask("g", "find me a hat", "train", "webshop", parent_id=task.task_id, initial_state="- saw: a shop")
    assert webshop.task_error(made) == "nothing is asked for, or there is no search bar"
