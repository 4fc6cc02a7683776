"""Requests to a server that dies, hangs, or answers nonsense."""

import shutil
import time
from pathlib import Path

import pytest

from infra.engines.vllm import ServedRole, VllmEngine
from infra.settings import Settings
from schemas.errors import EngineError, EngineUnavailable
from schemas.sampling import Sampled, Sampling

pytestmark = pytest.mark.integration

ASKED = Sampling(max_new_tokens=4, end_ids=(0,))
FINE = [Sampled([7, 0], [-0.5, -0.25], ended=True, weight_version="w")]


class Tried:
    """Served role with a plan of what its servers do, one completion after the other."""

    def __init__(self, folder: Path) -> None:
        self.python = folder / "python"
        shutil.copy(Path(__file__).with_name("misbehaving_vllm.py"), self.python)
        self.python.chmod(0o755)
        self.plan, self.said = folder / "plan", []
        self.will()
        here = Settings(home=folder, vllm_python=self.python)
        self.role = ServedRole(here, "test", "w", Path.mkdir, "float32", self.said.append, silence_s=2)

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
