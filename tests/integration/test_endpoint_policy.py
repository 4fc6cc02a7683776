"""Policy that is a chat model at an endpoint: an HTTP server on loopback that knows what an expert would do."""

import json
import re

import pytest

from infra.context import run_context
from infra.environments.by_name import open_environment
from schemas.errors import EngineError, InputError
from schemas.recipes.judging import EvaluationRecipe
from schemas.recipes.recipe import Recipe
from tasks.judging.evaluate import evaluate
from tasks.playing.open_actor import put_endpoint_policy
from tasks.running.artifacts import get_trajectories
from tests.command_line import TOY, changed, dreamgym_here
from tests.fresh import reset_context
from tests.integration.chat_server import ChatServer, chat_server

pytestmark = pytest.mark.integration
SHOWN = re.compile(
    r"Your task: (?P<task>.*?)\n\nYou have taken .*?The environment now:\n(?P<state>.*?)\n\nThink", re.DOTALL
)
POLICY = {"template": "chat", "think": "short", "history_length": 1, "max_thought_tokens": 60}
NUM_TASKS = 6


class Expert(ChatServer):
    """Server that answers as the expert does, in another way for some tasks."""

    def __init__(self, fail_every: int = 0) -> None:
        super().__init__(fail_every)
        self.known: dict[tuple[str, str], str] = {}
        self.cut, self.formless = set[str](), set[str]()
        self.away_after = 0
        """Number of answers after which another page is served; 0: never."""

    def learn(self, environment, split: str, num_tasks: int) -> list[str]:
        """Learn the way of the expert through these tasks; return their instructions."""
        tasks = environment.tasks(split, num_tasks)
        for task in tasks:
            state, done = environment.reset({0: task})[0], False
            while not done:
                action = environment.expert(0)
                self.known[task.instruction, state] = action
                step = environment.step({0: action})[0]
                state, done = step.state, step.done
        return [task.instruction for task in tasks]

    def answer(self, body: dict) -> str:
        with self.one_at_a_time:
            self.questions.append(body)
            self.page = b"<p>away</p>" if len(self.questions) == self.away_after else self.page
        (message,) = body["messages"]
        shown = SHOWN.search(message["content"])
        action = self.known.get((shown["task"], shown["state"]), "look")
        if shown["task"] in self.formless:
            return f"I would say: {action}"
        return f"<think>{'cut' if shown['task'] in self.cut else 'on'}</think><action>{action}</action>"

    def finish_reason(self, text: str) -> str:
        return "length" if "<think>cut" in text else "stop"


@pytest.fixture
def expert():
    with chat_server(kind=Expert) as server:
        yield server


@pytest.fixture
def here(in_a_cycle, monkeypatch):
    monkeypatch.setenv("DREAMGYM_ENDPOINT_CONCURRENCY", "3")
    monkeypatch.setenv("DREAMGYM_ENDPOINT_API_KEY", "key")
    reset_context()


def evaluated(expert: Expert, temperature: float = 0.0, **policy):
    play = Recipe(name="asked", policy={**POLICY, **policy}).play
    measured = EvaluationRecipe(temperature=temperature)
    reference = put_endpoint_policy(expert.url, "gpt")
    return evaluate.__wrapped__("evaluate model", reference, None, [], play, measured, "test", NUM_TASKS, 0)


@pytest.mark.usefixtures("here")
def test_an_expert_at_an_endpoint_wins_all_tasks_and_what_has_no_action_is_refused_and_counted(expert):
    environment, expert.company_s = open_environment(Recipe(name="asked").environment), 5.0
    tasks = expert.learn(environment, "test", NUM_TASKS)
    assert len(set(tasks)) >= 3
    assert evaluated(expert)["real_success"] == 1.0
    first = expert.questions[0]
    assert (first["model"], first["temperature"], first["max_tokens"]) == ("gpt", 0.0, 24 + 60 + 32)
    assert [one["role"] for one in first["messages"]] == ["user"]
    assert "response_format" not in first
    assert 1 < expert.most_at_once <= 3
    limits = run_context().display.time.stage_limits
    assert limits.get("evaluate model", {}) == {}

    expert.formless, expert.cut = {tasks[0]}, {tasks[1]}
    lost = evaluated(expert, temperature=0.1)
    names = [one.task_id for one in environment.tasks("test", NUM_TASKS)]
    spoilt = {name for name, task in zip(names, tasks, strict=True) if task in {tasks[0], tasks[1]}}
    assert lost["successes"] == {name: float(name not in spoilt) for name in names}
    met = limits["evaluate model"]
    assert met["answers without a thought and an action"] > 0
    assert met["answers longer than 116 tokens"] > 0
    samples = {one.task.task_id: one for one in get_trajectories(lost["samples"])}
    assert set(samples[names[0]].actions) == {"<format error>"}
    whole = next(one for name, one in samples.items() if name not in spoilt)
    assert {turn.thought for turn in whole.turns} == {"on"}


@pytest.mark.usefixtures("here")
def test_an_evaluation_that_was_interrupted_pays_for_no_answer_twice(expert):
    expert.learn(open_environment(Recipe(name="asked").environment), "test", NUM_TASKS)
    expert.away_after = 9
    with pytest.raises(EngineError):
        evaluated(expert)
    paid, expert.away_after, expert.page = len(expert.questions), 0, b""
    first = evaluated(expert)
    num_needed = len(expert.questions)
    assert evaluated(expert)["successes"] == first["successes"]
    assert len(expert.questions) == num_needed
    asked = [json.dumps(one) for one in expert.questions]
    assert len(asked) - len(set(asked)) < expert.most_at_once, (
        "only answers under way when it ended are asked for again"
    )
    assert num_needed > paid >= 9


@pytest.mark.usefixtures("here")
def test_answers_are_sampled_at_the_temperature_of_the_evaluation_with_other_seeds(expert):
    expert.learn(open_environment(Recipe(name="asked").environment), "test", NUM_TASKS)
    evaluated(expert, temperature=0.7)
    assert {one["temperature"] for one in expert.questions} == {0.7}
    assert len({one["seed"] for one in expert.questions}) == len(expert.questions)


@pytest.mark.usefixtures("here")
def test_a_prompt_has_four_characters_for_each_token_of_its_budget(expert):
    evaluated(expert, max_prompt_tokens=150)
    lengths = [len(one["messages"][0]["content"]) for one in expert.questions]
    assert max(lengths) <= 600
    assert "[...]" in "".join(one["messages"][0]["content"] for one in expert.questions)


@pytest.mark.usefixtures("here")
def test_other_prompts_than_those_of_a_chat_and_a_server_that_is_no_endpoint_are_refused(expert):
    with pytest.raises(InputError, match=r'needs policy\.template = "chat"'):
        evaluated(expert, template="plain", think="off")
    expert.page = b"<html>"
    with pytest.raises(EngineError, match="something else than a chat completion"):
        evaluated(expert)


def test_the_command_line_evaluates_a_model_at_an_endpoint(expert, tmp_path):
    environment = open_environment(Recipe(name="asked").environment)
    expert.learn(environment, "test", 4)
    think = changed(*TOY, "policy.think=short")
    asked = ("evaluate", "textworld-tiny", "--model", "gpt", "--endpoint", expert.url, *think, "--json")
    done = dreamgym_here(tmp_path, *asked)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["model"], found["num_tasks"], found["real_success"]) == ("gpt", 4, 1.0)
    assert "dream_success" not in found
