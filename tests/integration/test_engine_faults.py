"""Requests to a server that dies, hangs, or answers nonsense."""

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from infra.engines import vllm
from infra.engines.vllm import VllmEngine
from infra.engines.vllm_command import ServerOptions
from infra.engines.vllm_served import ServedModel, Stored
from infra.environments.by_name import open_environment
from infra.running.gpu_memory import release_gpu_memory
from infra.settings import Settings
from schemas.errors import EngineError, EngineUnavailable
from schemas.recipes.data import RetrievalRecipe
from schemas.recipes.networks import EngineRecipe, ExperienceRecipe, TrainingRecipe
from schemas.recipes.policy import PolicyRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask, Reference
from schemas.sampling import Sampled, Sampling
from tasks.curriculum.vary_tasks import _generator
from tasks.playing.play import dream_environment, play
from tasks.running.artifacts import get_model, put_model
from tasks.running.engines import open_engine
from tasks.running.predictors import open_predictor
from tests.fresh import reset_context

pytestmark = pytest.mark.integration

ASKED = Sampling(max_new_tokens=4, end_ids=(0,))
MODEL = Stored("w", Path.mkdir)
FINE = [Sampled([7, 0], [-0.5, -0.25], ended=True, weight_version="w")]


def stand_in(folder: Path) -> Path:
    """Put a stand-in for vLLM's Python into a folder."""
    python = folder / "python"
    shutil.copy(Path(__file__).with_name("misbehaving_vllm.py"), python)
    python.chmod(0o755)
    (folder / "plan").write_text("")
    return python


class Tried:
    """Served model with a plan of what its servers do, one completion after the other."""

    def __init__(self, folder: Path, max_tokens: int | None = None, adapter_rank: int = 0, **more: Any) -> None:
        self.python = stand_in(folder)
        self.plan, self.said = folder / "plan", []
        self.will()
        here = Settings(home=folder, vllm_python=self.python)
        options = ServerOptions("float32", max_tokens, adapter_rank, **more)
        self.served = ServedModel(here, "test", MODEL, options, self.said.append, 2)

    def will(self, *what: str) -> None:
        self.plan.write_text("\n".join(what))

    def complete(self) -> list[Sampled]:
        return VllmEngine(self.served).complete([[5, 6]], ASKED)


@pytest.fixture
def tried(tmp_path):
    tried = Tried(tmp_path)
    yield tried
    tried.served.close()


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


def test_threads_that_asked_a_server_that_dies_start_one_new_server(tried):
    tried.will("die")
    with ThreadPoolExecutor(8) as threads:
        answers = [threads.submit(tried.complete) for _ in range(8)]
    assert [one.result() for one in answers] == [FINE] * 8
    assert len(tried.said) == 1


def test_a_server_that_died_between_two_questions_takes_other_weights_when_it_is_started_anew(tried):
    tried.served._server.close()
    tried.served.load(Stored("other", Path.mkdir))
    assert tried.complete()[0].weight_version == "other"


def adapters_at(folder: Path) -> list[tuple[int, str, str]]:
    """Return what servers were asked about adapters: number of the server, what, and the name of the adapters."""
    asked = [line.split() for line in (folder / "adapters").read_text().splitlines()]
    servers = list(dict.fromkeys(server for server, _, _ in asked))
    return [(servers.index(server), path.removeprefix("/v1/"), name) for server, path, name in asked]


def test_a_server_that_is_started_anew_gets_the_adapters_of_every_role_again(tmp_path):
    tried = Tried(tmp_path, max_tokens=8, adapter_rank=16)
    try:
        tried.served.adapt("policy", Stored("one", Path.mkdir))
        tried.served.adapt("experience model", Stored("two", Path.mkdir))
        tried.served.adapt("policy", Stored("three", Path.mkdir))
        first, old = VllmEngine(tried.served, "three"), VllmEngine(tried.served, "one")
        tried.will("die", "fine")
        assert first.complete([[5, 6]], ASKED)[0].weight_version == "three"
        with pytest.raises(EngineError, match="samples from w and three and two now, not from one"):
            old.complete([[5, 6]], ASKED)
        for max_tokens, rank in ((6, 8), (8, 17)):
            tried.served.make_room(ServerOptions("float32", max_tokens, rank))
    finally:
        tried.served.close()
    load, unload = "load_lora_adapter", "unload_lora_adapter"
    begun = [(0, load, "one"), (0, load, "two"), (0, unload, "one"), (0, load, "three")]
    assert adapters_at(tmp_path) == [*begun, *((server, load, name) for server in (1, 2) for name in ("three", "two"))]
    arguments = json.loads((tmp_path / "arguments").read_text())
    assert arguments[arguments.index("--max-lora-rank") + 1] == "32", "the next rank that vLLM has"


def test_a_server_that_cannot_start_is_not_tried_again(tmp_path):
    with pytest.raises(EngineError, match="is not there"):
        ServedModel(Settings(home=tmp_path, vllm_python=tmp_path / "none"), "t", MODEL, ServerOptions(), print)


def asked_of(folder: Path) -> list[Any]:
    """Return what servers were asked, in order."""
    return [json.loads(line) for line in (folder / "asked").read_text().splitlines()]


def test_a_server_sleeps_while_a_network_is_trained_and_wakes_once_it_is_asked(tmp_path, monkeypatch):
    tried = Tried(tmp_path, sleeps=True)
    monkeypatch.setitem(vllm._served, "test", tried.served)
    try:
        release_gpu_memory()
        release_gpu_memory()
        assert asked_of(tmp_path) == ["/sleep?level=1"]
        assert [tried.complete(), tried.complete()] == [FINE, FINE]
        question = {"prompts": [[5, 6]], "max_tokens": 4}
        assert asked_of(tmp_path)[1:] == ["/wake_up", question, question]
        tried.served._server.close()
        release_gpu_memory()
        assert tried.complete() == FINE
        assert len(tried.said) == 1
    finally:
        tried.served.close()


def test_a_server_that_may_not_sleep_stays_awake(tried, monkeypatch):
    monkeypatch.setitem(vllm._served, "test", tried.served)
    release_gpu_memory()
    assert not (tried.python.parent / "asked").exists()


@pytest.mark.parametrize(
    ("ours", "gpus", "visible", "parts"),
    [
        (None, (), "all", None),
        (None, (2, 0), "2,0", "2"),
        ("4,5,7", (1, 2), "5,7", "2"),
        ("GPU-a,GPU-b", (1,), "GPU-b", None),
    ],
)
def test_a_server_has_the_gpus_of_its_options_among_ours(tmp_path, monkeypatch, ours, gpus, visible, parts):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if ours:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", ours)
    Tried(tmp_path, gpus=gpus).served.close()
    arguments = json.loads((tmp_path / "arguments").read_text())
    assert (tmp_path / "visible").read_text() == visible
    named = arguments[arguments.index("--tensor-parallel-size") + 1] if "--tensor-parallel-size" in arguments else None
    assert named == parts


def test_a_server_is_asked_for_no_more_than_a_stream_has_room_for(tmp_path):
    short = Tried(tmp_path, max_tokens=8)
    try:
        arguments = json.loads((tmp_path / "arguments").read_text())
        assert arguments[arguments.index("--max-model-len") + 1] == "8"
        streams = VllmEngine(short.served).open(4)
        streams.extend(range(4), [[5] * 3, [6] * 7, [7] * 8, [8] * 9])
        short.will("fine", "one")
        sampled = streams.generate(range(4), ASKED)
    finally:
        short.served.close()
    assert asked_of(tmp_path) == [{"prompts": [[5] * 3], "max_tokens": 4}, {"prompts": [[6] * 7], "max_tokens": 1}]
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


def adapted(policy: Reference, scale: float) -> Reference:
    """Store a policy with adapters."""
    model = get_model(policy, TrainingRecipe(lora_rank=4))
    for name, weight in model.network.named_parameters():
        if "lora_B" in name:
            weight.data.fill_(scale)
    return put_model(model, policy)


def test_adapters_of_all_roles_are_on_one_server_which_takes_the_place_of_their_own(server, policy, tmp_path):
    recipe = EngineRecipe(name="vllm")
    open_engine("policy", policy, recipe, 0, 900)
    (own,) = vllm._served.values()
    first, second = adapted(policy, 0.1), adapted(policy, 0.2)
    by_policy = open_engine("policy", first, recipe, 0, 900)
    assert own._server._process.poll() is not None, "nobody needs it any more"
    by_model = open_engine("experience model", second, recipe, 0, 1_000)
    (shared,) = vllm._served.values()
    assert length_of(server()) == 1_000
    assert (by_policy.max_tokens, by_model.max_tokens) == (900, 1_000)
    for engine, stored in ((by_policy, first), (by_model, second)):
        assert engine.complete([[5, 6]], ASKED)[0].weight_version == stored.sha256
    folder = Path(shared._server._folder.name)
    assert {file.name for file in (folder / first.sha256).iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }
    assert not [file.name for file in (folder / "first").iterdir() if file.name.startswith("adapter")]


def test_roles_on_other_gpus_have_servers_of_their_own(server, policy, tmp_path):
    recipe = EngineRecipe(name="vllm", policy_gpus=[0], experience_gpus=[1, 2], sleep=True)
    open_engine("policy", adapted(policy, 0.1), recipe, 0, 900)
    assert (tmp_path / "visible").read_text() == "0"
    open_engine("experience model", adapted(policy, 0.2), recipe, 0, 900)
    assert (tmp_path / "visible").read_text() == "1,2"
    assert all(served.options.sleeps for served in vllm._served.values())
    assert len(vllm._served) == 2


def test_a_policy_reads_as_much_as_an_episode_has_and_another_limit_starts_another_server(server, policy):
    for length in (900, 1_000):
        recipe = Recipe(
            name="short", engine=EngineRecipe(name="vllm"), policy=PolicyRecipe(max_episode_tokens=length)
        ).play
        assert play("none", policy, open_environment(recipe.environment), "real", [], recipe, 1.0, 0) == []
        assert length_of(server()) == length


def test_dreamt_episodes_ask_the_servers_one_by_one(server, policy, tmp_path):
    recipe = Recipe(name="short", engine=EngineRecipe(name="vllm"), experience=ExperienceRecipe(num_retries=0)).play
    tasks = [AgentTask(f"task {number}", "look", "train", "f", initial_state="- you: kitchen") for number in range(3)]
    dream = dream_environment(
        policy, [], recipe.model_copy(update={"retrieval": RetrievalRecipe(num_demonstrations=0)}), 0
    )
    episodes = play("dream", policy, dream, "dream", tasks, recipe, 1.0, 0)
    assert [one.task for one in episodes] == tasks
    assert {len(one["prompts"]) for one in asked_of(tmp_path)} == {1}
