"""`dreamgym judge`: dreams of a stored run are scored by a chat model on loopback, or by the run's own model."""

import json

import pytest

from infra.context import objects
from infra.storage.run_records import record_of
from models.measurement.rubric import DIMENSIONS
from models.network.language_model import LanguageModel
from models.text.prompts import PromptFormat
from schemas.plain import plain, restored
from schemas.recipes.networks import EngineRecipe, ExperienceRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask, Failure, Reference, Step, Trajectory, Turn
from schemas.sampling import Sampled
from tasks.judging.judge_predictions import judge_predictions
from tasks.running.artifacts import get_frozen_model, put_model, put_trajectories
from tests.chat import chat_tokenizer
from tests.command_line import dreamgym_here, python_here
from tests.integration.chat_server import chat_server
from tests.rollouts import Speaker
from tests.stored_runs import finished_run
from tests.tracked import of_the_cycles_own_run
from tests.unit.tiny import tiny_network

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("in_a_cycle", "shared_prefect")]

TASK = AgentTask("t", "do it", "train", "f")
SAID = {
    "open": f"```json\n{json.dumps({'rubric_scores': dict.fromkeys(DIMENSIONS, 2)})}\n```",
    "eat": "<think>{hm}</think>" + json.dumps({"rubric_scores": dict(zip(DIMENSIONS, (0, 1, 2, 0), strict=True))}),
    "look": "All fine!",
}


def episode(origin, *actions: str, states: str = "", failure: Failure | None = None) -> Trajectory:
    """Return an episode whose step from state n leads to state n + 1, or to these; the last step may have failed."""
    after = states or "".join(str(number + 1) for number in range(len(actions)))
    before = f"0{after}"
    turns = [
        Turn(f"- n: {before[i]}", action, Step(f"- n: {after[i]}", 0.0, done=False, success=False))
        for i, action in enumerate(actions)
    ]
    if failure:
        turns.append(Turn("- n: 9", "broken", Step("- n: 9", 0.0, done=True, success=False, failure=failure)))
    return Trajectory(TASK, origin, turns, failure=failure)


def stored_run(*replayed: Trajectory, **fields) -> None:
    """Store a run with one group of dreams, and these dreams with their replays."""
    group = [episode("dream", "open", "eat", "look", failure=Failure.UNPARSABLE), episode("dream", "open")]
    lineage: dict = {"dreams": [put_trajectories(group)], "experience_model": fields.pop("model", None)}
    if replayed:
        samples = {"replayed_samples": put_trajectories(replayed)}
        lineage["measured"] = objects().put_json(
            plain({"evaluations": {"start": samples, "dream": samples}}), "measured"
        )
    recipe = Recipe.model_validate({"name": "r", **fields}).model_dump(mode="json")
    finished_run("r-1", recipe=recipe, lineage=plain(lineage))


@pytest.fixture
def server():
    with chat_server() as server:
        server.judge = lambda asked: SAID[asked.partition("**Action:**\n")[2].partition("\n")[0]]
        yield server


def asked_actions(server) -> list[str]:
    asked = [one["messages"][1]["content"] for one in server.questions]
    return sorted(one.partition("**Action:**\n")[2].partition("\n")[0] for one in asked)


def test_scores_by_hand_with_answers_that_cannot_be_read_and_the_agreement_with_replays(home, server):
    dreamt = episode("dream", "open", "eat", "open", states="192")  # all after the wrong state is not compared
    stored_run(dreamt, episode("real", "open", "eat", "open", states="123"))
    command = ("judge", "@latest", "--model", "j")
    done = dreamgym_here(home, *command, "--json", DREAMGYM_ENDPOINT_URL=server.url)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["num_drawn"], found["num_judged"], found["num_unreadable"], found["num_broken"]) == (5, 3, 1, 1)
    # open, eat and open again: (2 + 0 + 2) / 3, (2 + 1 + 2) / 3, 2, (2 + 0 + 2) / 3
    means = [found["scores"][name]["mean"] for name in DIMENSIONS]
    assert means == pytest.approx([4 / 3, 5 / 3, 2, 4 / 3])
    replays = found["replays"]
    assert (replays["num_held"], replays["num_wrong"], replays["num_unreadable"]) == (1, 1, 0)
    assert replays["difference"]["mean"] == pytest.approx(2 - 3 / 4)
    # "open" from 0 to 1 is dreamt three times and asked once; "eat" leads to another state in the replayed dream
    assert asked_actions(server) == ["eat", "eat", "look", "open"]
    logged = of_the_cycles_own_run("latest_metrics", home, {"run_id": "rubric"})
    assert logged["hallucination"] == pytest.approx(4 / 3)
    assert logged["num_unreadable"] == 1
    with python_here(home):
        rows = objects().get_json(restored(found["judged"]))
        assert record_of("r-1")["rubric"]["j"]["scores"] == found["scores"]
    assert [row["scores"] for row in rows].count(None) == 2
    assert {row["held"] for row in rows} == {None, True, False}
    shown = dreamgym_here(home, *command, DREAMGYM_ENDPOINT_URL=server.url)
    assert shown.returncode == 0, shown.stderr
    assert len(server.questions) == 4, "scores that are stored are not asked for again"
    assert (
        "3 of 5 drawn transitions have scores; unreadable answers: 1, transitions without a prediction: 1"
        in " ".join(shown.stdout.split())
    )
    assert "mean score 2.00 of 1 that hold for real and 0.75 of 1 that do not" in " ".join(shown.stdout.split())


def test_fewer_transitions_are_the_same_ones_each_time(home, server):
    stored_run()
    for judge in ("one", "other"):
        arguments = ("judge", "--model", judge, "--num-transitions", "2")
        done = dreamgym_here(home, *arguments, DREAMGYM_ENDPOINT_URL=server.url)
        assert done.returncode == 0, done.stderr
        assert "no judged transition has a stored real replay" in " ".join(done.stdout.split())
    asked = [question["messages"] for question in server.questions]
    assert 1 <= len(asked) // 2 <= 2
    assert sorted(map(str, asked[: len(asked) // 2])) == sorted(map(str, asked[len(asked) // 2 :]))


def own_chat() -> Reference:
    """Store a chat network of random weights, which has nothing to say."""
    tokenizer = chat_tokenizer()
    network = tiny_network(kind="llama", vocab_size=len(tokenizer))
    network.config.max_position_embeddings = 4_096
    return put_model(LanguageModel(network, tokenizer, PromptFormat(tokenizer)))


def test_without_a_model_the_runs_own_chat_model_judges(home, server):
    stored_run(model=own_chat(), experience={"template": "chat"})
    done = dreamgym_here(home, "judge", "--json", DREAMGYM_ENDPOINT_URL=server.url)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["judge"] == "experience model"
    assert (found["num_judged"], found["num_unreadable"], found["scores"]) == (0, 4, {})
    assert server.questions == []


def test_what_a_network_of_ours_writes_is_read_as_scores(monkeypatch):
    model = own_chat()
    format = get_frozen_model(model).format
    answers = [Sampled(format.ids(SAID[action]), [], ended=False) for action in ("open", "look", "eat")]
    monkeypatch.setattr("tasks.judging.judge_predictions.open_engine", lambda *_: Speaker(answers))
    dreams = put_trajectories([episode("dream", "a", "b", "c")])
    asked = [dreams], [], model, ExperienceRecipe(template="chat"), EngineRecipe(), 100, 0
    found = judge_predictions.__wrapped__(*asked)
    assert (found["num_judged"], found["num_unreadable"]) == (2, 1)
    assert [found["scores"][name]["mean"] for name in DIMENSIONS] == [1, 1.5, 2, 1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), 'answers no questions, as its experience.template is "plain": name a judge with --model NAME'),
        (("--model", "j"), "j is to be asked, and no endpoint is known: set DREAMGYM_ENDPOINT_URL"),
    ],
)
def test_without_a_judge_the_command_says_what_to_do(home, arguments, said):
    stored_run()
    refused = dreamgym_here(home, "judge", *arguments)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_run_without_dreams_is_refused_in_a_sentence(home, server):
    finished_run("r-1", recipe=Recipe(name="r").model_dump(mode="json"))
    refused = dreamgym_here(home, "judge", "--model", "j", DREAMGYM_ENDPOINT_URL=server.url)
    assert refused.returncode == 2
    assert "run r-1 has no dreams to judge" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert server.questions == []
