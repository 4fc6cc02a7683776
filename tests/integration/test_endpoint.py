"""Teacher, experience model and task generator at an endpoint: an HTTP server on loopback that fails on purpose."""

import json
import socket
from collections import Counter

import pytest

from flows.planning.load_recipe import load_recipe
from infra.context import replay_store
from infra.engines.endpoint import Cost, Endpoint
from infra.settings import Settings
from infra.storage.replay_store import ReplayStore
from models.experience.chat_predictor import ChatPredictor
from models.experience.experience_model import ExperienceModel
from models.experience.teacher import TeacherAnnotator
from models.text.prompts import TransitionQuery
from schemas.errors import EngineError, InputError
from schemas.recipes.networks import ExperienceRecipe
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from tasks.data.annotate import annotate
from tasks.running.artifacts import get_trajectories, put_trajectories
from tests.command_line import LENIENT_GATE, TOY, changed, dreamgym_here
from tests.fresh import reset_context
from tests.integration.chat_server import chat_server
from tests.tracked import of_the_cycles_own_run

pytestmark = pytest.mark.integration

TASK = AgentTask("t", "do it", "train", "f", initial_state="- you: kitchen\n- carrot: counter raw")


@pytest.fixture
def server():
    with chat_server() as server:
        yield server


@pytest.fixture
def here(server, tmp_path) -> Settings:
    return Settings(home=tmp_path, endpoint_url=server.url, endpoint_concurrency=3)


def asked(here: Settings) -> Endpoint:
    return Endpoint(here, "m", lambda cost: None)


def episodes(count: int) -> list[Trajectory]:
    def turn(i: int, action: str) -> Turn:
        return Turn(f"- n: {i}", action, Step(f"- n: {i}{action}", 0.0, done=False, success=False))

    return [Trajectory(TASK, "real", [turn(i, "one"), turn(i, "two")]) for i in range(count)]


def situation(action: str) -> TransitionQuery:
    return TransitionQuery(TASK, TASK.initial_state, action, ("look",), (" take carrot =>\n- carrot: held",))


def test_every_step_is_explained_through_errors_and_the_second_time_costs_nothing(tmp_path):
    with chat_server(fail_every=3) as server:
        server.num_bad_answers = 1
        here = Settings(home=tmp_path, endpoint_url=server.url)
        costs: list[Cost] = []
        teacher = TeacherAnnotator(Endpoint(here, "m", costs.append))
        traces = teacher.annotate(episodes(4))
        assert traces == [["as one (end)", "as two (end)"]] * 4
        assert teacher.annotate(episodes(4)) == traces
        first = Cost(num_requests=5, num_prompt_tokens=50, num_completion_tokens=25)
        assert costs == [first, Cost(num_cached=4)], "four, and one that left out a step; then nothing"


def test_what_a_teacher_never_explains_has_no_traces_and_is_asked_anew_the_next_time(server, here):
    server.num_bad_answers = 3
    first, *others = TeacherAnnotator(asked(here.model_copy(update={"endpoint_concurrency": 1}))).annotate(episodes(3))
    assert first is None
    assert others == [["as one (end)", "as two (end)"]] * 2
    assert TeacherAnnotator(asked(here)).annotate(episodes(1)) == [["as one (end)", "as two (end)"]]


@pytest.mark.parametrize(
    "answer",
    [
        '{"task_tutorial": {"Overall Plan": "p"}, "state_transitions": [{"step_id": 0, "transition_plan": "as one"}, '
        '{"step_id": 1, "transition_plan": "as two"}]}',
        '```json\n{"transitions": [{"step": 1, "reasoning": "as two"}, {"step": 0, "reasoning": "as one"}]}\n```',
        '<think>{hm}</think>\n{"transitions": [{"step": 0, "reasoning": "as one"}, {"step": 1, "reasoning": "as two"}]}',
    ],
)
def test_a_teacher_may_answer_in_the_papers_form_in_fences_or_after_a_thought(answer):
    class Teacher:
        def answer(self, questions, is_fine, num_attempts):
            assert is_fine(0, answer)
            return [answer] * len(questions)

    assert TeacherAnnotator(Teacher()).annotate(episodes(1)) == [["as one", "as two"]]


@pytest.mark.usefixtures("in_a_cycle")
def test_an_unexplained_trajectory_is_quarantined_and_ends_nothing(server, monkeypatch):
    monkeypatch.setenv("DREAMGYM_ENDPOINT_URL", server.url)
    monkeypatch.setenv("DREAMGYM_ENDPOINT_CONCURRENCY", "1")
    reset_context()
    server.num_bad_answers = 3
    recipe = load_recipe("textworld-tiny", {"annotate.annotator": "teacher", "annotate.teacher_model": "t"})
    given = put_trajectories(episodes(3))
    explained = annotate.__wrapped__(given, recipe.annotate, recipe.environment, recipe.retrieval, 0, store=False)
    assert [one.turns[0].state for one in get_trajectories(explained)] == ["- n: 1", "- n: 2"]
    (row,) = replay_store().read("quarantine")
    assert row["where"] == "real t"
    assert row["reason"] == "the teacher did not explain each of its steps in three attempts"
    assert json.loads(row["raw"])["turns"][0]["action"] == "one"


def test_no_endpoint_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="DREAMGYM_ENDPOINT_URL"):
        asked(Settings(home=tmp_path))


@pytest.mark.parametrize("command", ["check", "run"])
def test_without_an_endpoint_nothing_begins(tmp_path, command):
    refused = dreamgym_here(tmp_path, command, "textworld-tiny", *changed("experience.endpoint_model=e"))
    assert refused.returncode == 2
    assert "e is to be asked, and no endpoint is known: set DREAMGYM_ENDPOINT_URL" in refused.stderr
    assert not (tmp_path / "journal").exists()


def test_no_more_is_asked_at_once_than_allowed(server, here):
    server.company_s = 30.0
    TeacherAnnotator(asked(here)).annotate(episodes(20))
    assert 1 < server.most_at_once <= 3


def test_an_endpoint_that_speaks_another_language_is_a_typed_error(server, here):
    server.page = b"<html>please log in</html>"
    with pytest.raises(EngineError, match="something else than a chat completion"):
        TeacherAnnotator(asked(here)).annotate(episodes(1))


def test_an_endpoint_that_is_away_is_a_typed_error(tmp_path, monkeypatch):
    monkeypatch.setattr("infra.engines.endpoint._RETRIES", 0)
    away = Settings(home=tmp_path, endpoint_url="http://127.0.0.1:9/v1", endpoint_api_key="canary")
    with pytest.raises(EngineError, match=r"m at http://127.0.0.1:9/v1 failed: APIConnectionError") as failed:
        TeacherAnnotator(asked(away)).annotate(episodes(1))
    assert "canary" not in str(failed.value)


def test_an_endpoint_that_does_not_answer_in_time_is_an_error_that_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setattr("infra.engines.endpoint._RETRIES", 0)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and says nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        here = Settings(home=tmp_path, endpoint_url=url, endpoint_answer_within_s=0.2)
        with pytest.raises(EngineError, match=r"did not answer within 0\.2 s.*DREAMGYM_ENDPOINT_ANSWER_WITHIN_S"):
            TeacherAnnotator(asked(here)).annotate(episodes(1))


def model_at(here: Settings, **fields) -> ExperienceModel:
    return ExperienceModel(ChatPredictor(asked(here), seed=7), None, ExperienceRecipe(**fields))


def test_what_a_chat_model_predicts_is_a_step_like_any_other(server, here):
    taken, eaten, idle = model_at(here).predict([situation(a) for a in ("take carrot", "eat carrot", "wait")])
    assert (taken.success, taken.reward, taken.state) == (True, 1.0, TASK.initial_state)
    assert (eaten.done, eaten.state) == (False, "- you: kitchen")
    assert (idle.done, idle.state, idle.reasoning) == (False, TASK.initial_state, "(next) wait")
    assert all("response_format" not in question for question in server.questions)
    asked = next(
        q["messages"][1]["content"] for q in server.questions if "take carrot" in q["messages"][1]["content"][-20:]
    )
    assert asked == (
        "### Turn 1\n**Task Instruction:**\ndo it\n\n**Historical Context:**\nlook\n\n**Similar Experience:**\n"
        "1. take carrot =>\n- carrot: held\n\n**Current State:**\n- you: kitchen\n- carrot: counter raw\n\n"
        "**Action:**\ntake carrot"
    )


def test_nonsense_is_asked_again_and_is_in_the_end_a_failure_and_no_reward(server, here):
    server.num_bad_answers = 1 + ExperienceRecipe().num_retries
    (step,) = model_at(here).predict([situation("take carrot")])
    assert (step.failure, step.reward) == (Failure.UNPARSABLE, 0.0)
    server.num_bad_answers = ExperienceRecipe().num_retries
    (step,) = model_at(here).predict([situation("take carrot")])
    assert step.success


def test_what_is_drawn_differs_from_question_to_question_and_is_the_same_when_all_is_played_again(server, here):
    alike = [situation("wait")] * 3
    model_at(here, temperature=1.0).predict(alike)
    assert len({question["seed"] for question in server.questions}) == 3
    model_at(here, temperature=1.0).predict(alike)
    assert len(server.questions) == 3, "kept answers cost nothing"
    model_at(here).predict(alike)
    assert len({question["seed"] for question in server.questions[3:]}) == 1


def test_a_variation_is_a_task_with_a_first_state(here):
    (text,) = ChatPredictor(asked(here), 0).vary([TASK], 1.0)
    assert text == "do it![state]\n- you: kitchen"


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_a_cycle_with_teacher_experience_model_and_generator_at_an_endpoint(tmp_path):
    roles = ("annotate.annotator=teacher", "annotate.teacher_model=t", "experience.endpoint_model=e")
    recipe = changed(*TOY, *LENIENT_GATE, *roles, "curriculum.generator_model=g", "dream.num_rounds=1")
    with chat_server(fail_every=50) as server:
        done = dreamgym_here(tmp_path, "run", "textworld-tiny", *recipe, "--json", DREAMGYM_ENDPOINT_URL=server.url)
        assert done.returncode == 0, done.stderr
        num_questions = len(server.questions)
        again = dreamgym_here(tmp_path, "run", "textworld-tiny", *recipe, "--json", DREAMGYM_ENDPOINT_URL=server.url)
        assert again.returncode == 0, again.stderr
        assert len(server.questions) == num_questions
    asked = Counter(question["model"] for question in server.questions)
    assert asked["t"] > 0
    assert asked["e"] > 0
    summary = json.loads(done.stdout)
    cost = summary["endpoint_costs"]["e"]
    assert cost["num_prompt_tokens"] + cost["num_completion_tokens"] == 15 * asked["e"]
    logged = of_the_cycles_own_run("latest_metrics", tmp_path, summary)
    assert (logged["endpoint_requests"], logged["endpoint_tokens"]) == (num_questions, 15 * num_questions)
    model = summary["lineage"]["experience_model"]["__reference__"]
    assert model["kind"] == "endpoint model"
    rows = ReplayStore(Settings(home=tmp_path)).read("transitions")
    dreamt = [row for row in rows if row["origin"] == "dream"]
    assert dreamt
    assert {row["experience_model"] for row in dreamt} == {model["sha256"]}
