"""Requests to a server that dies, hangs, or answers nonsense."""

import json
import shutil
import time
from pathlib import Path

import pytest

from infra.engines import vllm
from infra.engines.vllm import ServedRole, VllmEngine
from infra.environments.by_name import open_environment
from infra.settings import Settings
from schemas.errors import EngineError, EngineUnavailable
from schemas.recipes.networks import EngineRecipe, ExperienceRecipe
from schemas.recipes.policy import PolicyRecipe
from schemas.recipes.recipe import Recipe
from schemas.sampling import Sampled, Sampling
from tasks.curriculum.vary_tasks import _generator
from tasks.playing.play import play
from tasks.running.predictors import open_predictor
from tests.fresh import reset_context

pytestmark = pytest.mark.integration

ASKED = Sampling(max_new_tokens=4, end_ids=(0,))
FINE = [Sampled([7, 0], [-0.5, -0.25], ended=True, weight_version="w")]


def stand_in(folder: Path) -> Path:
    """Put a stand-in for vLLM's Python into a folder."""
    python = folder / "python"
    shutil.copy(Path(__file__).with_name("misbehaving_vllm.py"), python)
    python.chmod(0o755)
    (folder / "plan").write_text("")
    return python


class Tried:
    """Served role with a plan of what its servers do, one completion after the other."""

    def __init__(self, folder: Path, max_tokens: int | None = None) -> None:
        self.python = stand_in(folder)
        self.plan, self.said = folder / "plan", []
        self.will()
        here = Settings(home=folder, vllm_python=self.python)
        self.role = ServedRole(here, "test", "w", Path.mkdir, "float32", self.said.append, 2, max_tokens)

    def will(self, *what: str) -> None:
        self.plan.write_text("\n".join(what))

    def complete(self) -> list[Sampled]:
        return VllmEngine(self.role).complete([[5, 6]], ASKED)


@pytest.fixture
def tried(tmp_path):
    tried = Tried(tmp_path)
    yield tried
    tried.role.close()


def test_an_answer_is_taken_as_it_is(tried):
    assert tried.complete() == FINE
    assert not tried.said


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("die", "does not answer: RemoteProtocolError"),
        ("hang", "does not answer: RemoteProtocolError"),
        ("out of memory", "answers /v1/completions with 500"),
        ("nan", "answers nonsense: choices.0.logprobs.token_logprobs.1: Input should be a finite number"),
        ("garbage", "answers nonsense"),
        ("no logprobs", "2 tokens with 1 log-probabilities"),
        ("too few", "0 continuations of 1 prompts"),
        ("too long", "9 tokens with 9 log-probabilities, where 4"),
        ("nothing", "answers nonsense: choices.0.token_ids"),
        ("certain", "answers nonsense: choices.0.logprobs.token_logprobs.0"),
    ],
)
def test_the_same_question_is_put_to_a_new_server(tried, fault, told):
    tried.will(fault, "fine")
    assert tried.complete() == FINE
    (line,) = tried.said
    assert line.startswith("restarted vLLM for the test: vLLM")
    assert told in line


def test_a_server_that_shows_no_heartbeat_tells_where_it_stood_and_is_ended(tried):
    tried.will("hang", "fine")
    started = time.monotonic()
    tried.complete()
    assert 2 < time.monotonic() - started < 30
    log = (tried.python.parent / "engines" / "vllm-test.log").read_text()
    assert "Fatal Python error: Aborted" in log
    assert "do_POST" in log


def test_restarts_are_limited_and_what_was_wrong_is_told(tried):
    tried.will(*["die"] * 4)
    with pytest.raises(EngineUnavailable, match="vLLM does not answer"):
        tried.complete()
    assert len(tried.said) == 3


def test_a_server_that_died_between_two_questions_takes_other_weights_when_it_is_started_anew(tried):
    tried.role._server.close()
    tried.role.load("other", Path.mkdir)
    assert tried.complete()[0].weight_version == "other"


def test_a_server_that_cannot_start_is_not_tried_again(tmp_path):
    with pytest.raises(EngineError, match="is not there"):
        ServedRole(Settings(home=tmp_path, vllm_python=tmp_path / "none"), "t", "w", Path.mkdir, "auto", print)


def test_a_server_is_asked_for_no_more_than_a_stream_has_room_for(tmp_path):
    short = Tried(tmp_path, max_tokens=8)
    try:
        arguments = json.loads((tmp_path / "arguments").read_text())
        assert arguments[arguments.index("--max-model-len") + 1] == "8"
        streams = VllmEngine(short.role).open(4)
        streams.extend(range(4), [[5] * 3, [6] * 7, [7] * 8, [8] * 9])
        short.will("fine", "one")
        sampled = streams.generate(range(4), ASKED)
    finally:
        short.role.close()
    asked = [json.loads(line) for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == [{"prompts": [[5] * 3], "max_tokens": 4}, {"prompts": [[6] * 7], "max_tokens": 1}]
    nothing = Sampled([], [], ended=False, weight_version="w", out_of_room=True)
    assert sampled == [*FINE, Sampled([7], [-0.5], False, "w", out_of_room=True), nothing, nothing]
    assert [streams.length(row) for row in range(4)] == [5, 8, 8, 9]


def test_without_a_limit_the_server_has_the_models_context(tried):
    assert "--max-model-len" not in json.loads((tried.python.parent / "arguments").read_text())


@pytest.fixture
def server(tmp_path, monkeypatch, policy):
    """Let vLLM's servers be stand-ins; return the arguments of the last one."""
    monkeypatch.setenv("DREAMGYM_VLLM_PYTHON", str(stand_in(tmp_path)))
    reset_context()
    yield lambda: json.loads((tmp_path / "arguments").read_text())
    for role in list(vllm._served):
        vllm._served.pop(role).close()


def length_of(arguments: list[str]) -> int:
    return int(arguments[arguments.index("--max-model-len") + 1])


@pytest.mark.parametrize(
    ("limits", "length"),
    [
        ({"max_prompt_tokens": 700}, 700 + 512),
        ({"max_prompt_tokens": 700, "max_new_tokens": 600}, 700 + 600),
        ({"max_prompt_tokens": 9_000}, 4_096),
    ],
)
def test_an_experience_model_reads_prompts_and_answers_of_its_recipe_up_to_its_positions(
    server, policy, limits, length
):
    predictor = open_predictor(policy, EngineRecipe(name="vllm"), ExperienceRecipe(**limits), 0)
    assert length_of(server()) == length
    by_torch = open_predictor(policy, EngineRecipe(), ExperienceRecipe(**limits), 0)
    for one in (predictor, by_torch):
        assert [(s.ids, s.out_of_room) for s in one.sample([[5] * length], 1.0)] == [([], True)]


def test_variations_share_the_server_of_predictions(server, policy):
    recipe, engine = Recipe(name="varied"), EngineRecipe(name="vllm")
    open_predictor(policy, engine, recipe.experience, 0)
    served = vllm._served["experience model"]
    _generator(policy, recipe.curriculum, recipe.experience, engine, 0)
    assert vllm._served["experience model"] is served


def test_a_policy_reads_as_much_as_an_episode_has_and_another_limit_starts_another_server(server, policy):
    for length in (900, 1_000):
        recipe = Recipe(
            name="short", engine=EngineRecipe(name="vllm"), policy=PolicyRecipe(max_episode_tokens=length)
        ).play
        assert play("none", policy, open_environment(recipe.environment), "real", [], recipe, 1.0, 0) == []
        assert length_of(server()) == length
