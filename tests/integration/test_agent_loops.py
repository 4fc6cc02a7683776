"""Agents of users as environments: real OpenAI clients in threads, whose requests are states and whose answers are actions."""

import threading
import time

import openai
import pytest
import torch

from infra.environments.agent_loops.environment import AgentLoops
from infra.environments.by_name import open_environment
from models.generation.torch_engine import TorchEngine
from models.network.transformer import weights_of
from models.rollout.conversations import Conversations
from models.rollout.rollouts import Rollout, RolloutOptions
from models.text.policies.policy_formats import open_policy_format
from models.text.prompts import PromptFormat
from schemas.chat import conversation_in, conversation_state
from schemas.errors import InputError
from schemas.recipes.environments import PluginRecipe
from schemas.recipes.policy import PolicyRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import MALFORMED, Failure
from tests.chat import chat_tokenizer
from tests.unit.tiny import tiny_network

pytestmark = pytest.mark.integration
RECIPE = PluginRecipe(name="treasure-agent", families=("2", "3"))


class Agents(AgentLoops):
    """Agents that do what each family is called; `loops` are functions of a client and a task."""

    def __init__(self, loops, timeout_s: float = 20.0) -> None:
        super().__init__(PluginRecipe(name="treasure-agent", families=tuple(loops), options={"timeout_s": timeout_s}))
        self.loops, self.endpoints = loops, []

    def instruction(self, split, family, seed):
        return f"{family} {split} {seed}"

    def play(self, task, policy):
        self.endpoints.append(policy)
        client = openai.OpenAI(base_url=policy.base_url, api_key=policy.api_key, max_retries=0)
        return self.loops[task.family](client, task)


def said(client, text, **more):
    asked = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="policy", messages=asked, **more)


def text_of(answer) -> str:
    return answer.choices[0].message.content


def begun(environment, num_tasks: int) -> dict[int, str]:
    return environment.reset(dict(enumerate(environment.tasks("train", num_tasks))))


def test_requests_are_states_answers_are_actions_and_the_end_is_what_the_loop_returns():
    def asks_twice(client, task):
        first = text_of(said(client, f"one? {task.instruction}"))
        return text_of(said(client, f"two? {first}")) == "yes"

    agents = Agents({"asks": asks_twice})
    assert begun(agents, 2) == {slot: f'- 1 user: "one? asks train {slot}"' for slot in (0, 1)}
    steps = agents.step({0: "a\nb", 1: "c"})
    assert [steps[slot].state for slot in (0, 1)] == ['- 1 user: "two? a\\nb"', '- 1 user: "two? c"']
    assert not steps[0].done
    ends = agents.step({0: "yes", 1: "no"})
    assert [(end.done, end.success, end.reward) for end in ends.values()] == [(True, True, 1.0), (True, False, 0.0)]
    assert conversation_in(ends[0].state)[-1] == {"role": "assistant", "content": "yes"}


def test_agents_work_at_the_same_time():
    together = threading.Barrier(4, timeout=10)

    def meets_others(client, task):
        together.wait()
        said(client, "first")
        together.wait()
        said(client, "second")
        return True

    agents = Agents({"meets": meets_others})
    begun(agents, 4)
    assert {step.state for step in agents.step(dict.fromkeys(range(4), "go")).values()} == {'- 1 user: "second"'}
    assert all(step.success for step in agents.step(dict.fromkeys(range(4), "go")).values())


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (lambda client, task: 1 / 0, "ZeroDivisionError"),
        (lambda client, task: True, "without a request"),
        (lambda client, task: time.sleep(5), "neither asked nor ended within 0.5 s"),
        (lambda client, task: said(client, "?") and 0.5, "True or False expected, not 0.5"),
        (lambda client, task: said(client, "?", n=2), "BadRequestError"),
    ],
)
def test_a_loop_that_breaks_has_no_outcome(loop, reason):
    agents = Agents({"breaks": loop}, timeout_s=0.5)
    begun(agents, 1)
    (step,) = agents.step({0: "answer"}).values()
    assert (step.failure, step.success) == (Failure.ENVIRONMENT, False)
    assert reason in step.reasoning


def test_an_episode_that_is_over_is_answered_no_more_and_its_key_opens_no_other():
    errors = []

    def asks_for_ever(client, task):
        try:
            while True:
                said(client, "more?")
        except openai.BadRequestError as error:
            errors.append(str(error))
            raise

    agents = Agents({"for ever": asks_for_ever})
    begun(agents, 1)
    agents.step({0: "more"})
    begun(agents, 1)  # as a rollout does after its last step
    for _ in range(100):
        if errors:
            break
        time.sleep(0.05)
    assert "this episode is over" in errors[0]
    assert len({one.api_key for one in agents.endpoints}) == 2
    stranger = openai.OpenAI(base_url=agents.endpoints[0].base_url, api_key="guessed", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        said(stranger, "let me in")


def test_an_answer_that_was_cut_is_an_empty_one_that_met_its_limit_and_streams_are_one_piece():
    seen = []

    def reads_the_reason(client, task):
        cut = said(client, "first").choices[0]
        streamed = [piece.choices[0] for piece in said(client, "second", stream=True)]
        seen.extend([(cut.message.content, cut.finish_reason), "".join(one.delta.content or "" for one in streamed)])
        return True

    agents = Agents({"reads": reads_the_reason})
    begun(agents, 1)
    agents.step({0: MALFORMED})
    agents.step({0: "whole"})
    assert seen == [("", "length"), "whole"]


def test_the_template_wins_when_the_policy_opens_boxes_and_takes_the_treasure():
    agent = open_environment(RECIPE)
    tasks = agent.tasks("train", 2)
    assert [agent.task_error(task) for task in tasks] == [None, None]
    state, done = agent.reset({0: tasks[0]})[0], False
    while not done:
        box = next((line for line in conversation_in(state)[-1]["content"].split("\n") if "treasure" in line), "")
        closed = [line for line in conversation_in(state)[-1]["content"].split("\n") if "closed" in line]
        action = "take treasure" if box else f"open {closed[0].removeprefix('- ').partition(':')[0]}"
        step = agent.step({0: action})[0]
        state, done = step.state, step.done
    assert step.success
    with pytest.raises(InputError, match=r'ingest\.played_by = "base"'):
        agent.expert(0)


@pytest.mark.parametrize("wrong", [0, "soon"])
def test_a_time_limit_is_a_number_above_0(wrong):
    with pytest.raises(InputError, match="seconds above 0"):
        Agents({"x": lambda client, task: True}, timeout_s=wrong)


class Chatting:
    """A small random chat network, as a policy in training and as a served one."""

    def __init__(self) -> None:
        self.tokenizer = chat_tokenizer()
        self.format = PromptFormat(self.tokenizer)
        network = tiny_network(kind="llama", vocab_size=len(self.tokenizer) + 8)
        self.engine = TorchEngine(weights_of(network, torch.float32), 0)
        self.policy = open_policy_format(self.format, PolicyRecipe(template="messages", max_action_tokens=12))


def test_a_policy_reads_in_training_the_tokens_that_it_reads_when_it_is_served():
    chatting = Chatting()
    messages = [
        {"role": "system", "content": 'Be "brief".'},
        {"role": "user", "content": "- a: b\n<|im_end|> \u2028 ü"},
    ]
    (task,) = Agents({"x": lambda client, task: True}).tasks("train", 1)
    shown = chatting.policy.prompt(task, (), conversation_state(messages))
    served = Conversations(chatting.engine, chatting.format, max_tokens=512)
    assert shown.ids == served.begin(messages, None, 0.0).ids
    assert shown.limits == ()
    other = chatting.policy.prompt(task, (), "- you: kitchen")
    assert "in one message" in other.limits[0]


def test_a_rollout_of_agents_has_tokens_as_sampled_and_ends_at_its_steps():
    def asks_thrice(client, task):
        answers = [text_of(said(client, f"{number}? {task.instruction}")) for number in range(3)]
        return all(isinstance(answer, str) for answer in answers)

    chatting, agents = Chatting(), Agents({"asks": asks_thrice})
    options = RolloutOptions(temperature=1.0, max_steps=3, max_episode_tokens=256, num_slots=2)
    rollout = Rollout(chatting.engine, chatting.policy, agents, "real", options)
    episodes = rollout.play(agents.tasks("train", 5))
    assert [(one.success, len(one.turns), one.failure) for one in episodes] == [(True, 3, None)] * 5
    stream = episodes[0].tokens[0]
    prompt = chatting.policy.prompt(episodes[0].task, (), episodes[0].turns[0].state).ids
    assert stream.ids[: len(prompt)] == prompt
    assert sum(stream.is_action) == len(stream.ids) - len(prompt) <= 12
    assert all(logprob < 0 for logprob, acts in zip(stream.logprobs, stream.is_action, strict=True) if acts)


def test_a_base_model_that_is_made_of_logs_cannot_make_them():
    with pytest.raises(ValueError, match="a model that is there before any log"):
        Recipe(name="r", backbone={"scratch": {}}, ingest={"played_by": "base"})
