"""vLLM for real, on the CPU: token ids in, token ids and their log-probabilities out, other weights without a restart."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from infra.engines.vllm import VllmEngine
from infra.engines.vllm_command import ServerOptions
from infra.engines.vllm_environment import is_there
from infra.engines.vllm_served import ServedModel, Stored
from infra.engines.vllm_server import VllmServer
from infra.environments.by_name import open_environment
from infra.settings import settings
from models.generation.torch_engine import TorchEngine
from models.network.language_model import LanguageModel, load_model
from models.network.packed import forward
from models.network.trained_parameters import trainable_copy
from models.network.transformer import logits_of, weights_of
from models.rollout.rollouts import Rollout
from schemas.errors import EngineError
from schemas.recipes.environments import CookingRecipe
from schemas.recipes.networks import TrainingRecipe
from schemas.records import Trajectory
from schemas.sampling import Sampling
from tasks.backbones.find_backbone import SHIPPED
from tests.command_line import COMMAND, TOY, changed, environment
from tests.distributions import likelihood_of_draws, nucleus_of
from tests.rollouts import plain_policy, rollout_options

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(not is_there(settings()), reason="no vLLM here: `make engines` makes its environment (3.4 GB)"),
]

_END, _MAX_TOKENS = 0, 1_000
_PROMPTS = [[5, 6, 7], [10, 11, 12, 13, 14, 15]]
_FEW = ("dream.num_rounds=1", "rl.groups_per_round=2", "experience.sft.epochs=0.5")
"""Changes for a loop that has only to be gone through."""


@pytest.fixture(scope="module")
def shipped() -> LanguageModel:
    return load_model(SHIPPED / "textworld-tiny")


@pytest.fixture(scope="module")
def other(shipped) -> LanguageModel:
    """Return a model of the same architecture with other weights."""
    model = load_model(SHIPPED / "textworld-tiny", random_init=True)
    assert model.num_parameters == shipped.num_parameters
    return model


@pytest.fixture(scope="module")
def served(shipped, tmp_path_factory):
    home = settings().model_copy(update={"home": tmp_path_factory.mktemp("home")})
    options = ServerOptions("float32", _MAX_TOKENS, adapter_rank=4, sleeps=True)
    opened = ServedModel(home, "test", Stored("shipped", shipped.save), options, print, silence_s=30)
    yield opened
    opened.close()


def true_logprobs(model: LanguageModel, ids: list[int], temperature: float) -> torch.Tensor:
    weights = weights_of(model.network, torch.float32)
    with torch.inference_mode():
        return (logits_of(weights, forward(weights, [ids]))[: len(ids)] / temperature).log_softmax(-1)


def test_streams_go_on_turn_after_turn_with_the_networks_own_logprobs(served, shipped):
    streams, whole = VllmEngine(served).open(3), [list(ids) for ids in (*_PROMPTS, _PROMPTS[0])]
    news = whole
    for temperature in (0.8, 1.0):
        streams.extend(range(3), news)
        sampled = streams.generate(range(3), Sampling(6, (shipped.format.end_id,), temperature))
        for ids, one in zip(whole, sampled, strict=True):
            before = len(ids)
            ids.extend(one.ids)
            table = true_logprobs(shipped, ids, temperature)
            for i, (token, logprob) in enumerate(zip(one.ids, one.logprobs, strict=True)):
                assert table[before + i - 1, token].item() == pytest.approx(logprob, abs=1e-3)
            assert one.ended == (one.ids[-1] == shipped.format.end_id)
            assert one.ended or len(one.ids) == 6
        assert [streams.length(row) for row in range(3)] == list(map(len, whole))
        news = [[20, 21], [22], [23, 24, 25]]
        whole = [[*ids, *new] for ids, new in zip(whole, news, strict=True)]
    assert streams.num_prefilled == 3 + 6 + 3 + 6


def test_rows_that_start_alike_sample_apart(served):
    streams = VllmEngine(served).open(8)
    streams.extend(range(8), [_PROMPTS[1]] * 8)
    assert len({tuple(one.ids) for one in streams.generate(range(8), Sampling(8, (_END,), 1.5))}) > 1


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 1.0), (1.4, 0.5), (1.0, 0.3)])
def test_what_is_sampled_is_distributed_as_the_network_says(served, shipped, temperature, top_p):
    count, prompt = 4_000, _PROMPTS[1]
    nucleus = nucleus_of(true_logprobs(shipped, prompt, temperature)[-1].exp().tolist(), top_p)
    streams = VllmEngine(served).open(count)
    streams.extend(range(count), [prompt] * count)
    sampled = streams.generate(range(count), Sampling(1, (_END,), temperature, top_p))
    drawn = [one.ids[0] for one in sampled]
    assert likelihood_of_draws(drawn, nucleus) > 1e-6, "vLLM draws by itself: of so many runs, one fails"


def test_greedy_episodes_are_those_of_the_torch_engine_but_where_two_tokens_are_equally_likely(served, shipped):
    cooking, torch_engine = (
        open_environment(CookingRecipe()),
        TorchEngine(weights_of(shipped.network, torch.float32), 0),
    )
    options, tasks = rollout_options(temperature=0.0, max_steps=6), cooking.tasks("train", 24)
    format = plain_policy(shipped.format, remember_episode=False)
    ours, theirs = (
        Rollout(engine, format, cooking, "real", options).play(tasks) for engine in (torch_engine, VllmEngine(served))
    )
    differences = [one for pair in zip(ours, theirs, strict=True) if (one := first_difference(*pair))]
    assert len(differences) <= 2
    for before, our_token, their_token in differences:
        table = true_logprobs(shipped, before, 1.0)[-1]
        assert table[our_token].item() == pytest.approx(table[their_token].item(), abs=1e-4)


def first_difference(ours: Trajectory, theirs: Trajectory) -> tuple[list[int], int, int] | None:
    """Return where two episodes part: the tokens before, and the next one of each.

    None if they do not part.
    """
    for one, other in zip(ours.tokens, theirs.tokens, strict=False):
        for i, (our_token, their_token) in enumerate(zip(one.ids, other.ids, strict=False)):
            if our_token != their_token:
                return one.ids[:i], our_token, their_token
    assert [turn.action for turn in ours.turns] == [turn.action for turn in theirs.turns]
    return None


def test_other_weights_take_effect_without_a_restart_and_an_engine_of_the_old_ones_is_refused(served, shipped, other):
    greedy, process = Sampling(8, (_END,), 0.0), served._server._process.pid
    old = VllmEngine(served)
    first = old.complete(_PROMPTS, greedy)
    served.load(Stored("other", other.save))
    with pytest.raises(EngineError, match="samples from other now, not from shipped"):
        old.complete(_PROMPTS, greedy)
    assert VllmEngine(served).complete(_PROMPTS, greedy) != first
    served.load(Stored("shipped", shipped.save))
    assert VllmEngine(served).complete(_PROMPTS, greedy) == first
    assert served._server._process.pid == process


def adapted(shipped: LanguageModel, seed: int) -> LanguageModel:
    network = trainable_copy(shipped.network, TrainingRecipe(lora_rank=4, lora_alpha=8), seed)
    for name, weight in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.05, generator=torch.Generator().manual_seed(seed))
    return replace(shipped, network=network)


def test_roles_sample_from_their_adapters_on_one_server_beside_the_model_beneath(served, shipped):
    sampling, process = Sampling(6, (_END,), 0.8), served._server._process.pid
    models = {"shipped": shipped, **{f"adapters {seed}": adapted(shipped, seed) for seed in (1, 2, 3)}}
    for role, name in (("policy", "adapters 1"), ("experience model", "adapters 2"), ("policy", "adapters 3")):
        served.adapt(role, Stored(name, models[name].save))
    engines = [VllmEngine(served, name) for name in ("adapters 3", "", "adapters 2")]
    for engine in engines:
        model = models[engine.weights]
        for prompt, one in zip(_PROMPTS, engine.complete(_PROMPTS, sampling), strict=True):
            table = true_logprobs(model, [*prompt, *one.ids], 0.8)
            expected = [table[len(prompt) + i - 1, token].item() for i, token in enumerate(one.ids)]
            assert one.logprobs == pytest.approx(expected, abs=1e-3)
            assert one.weight_version == engine.weights
    with pytest.raises(EngineError, match="not from adapters 1"):
        VllmEngine(served, "adapters 1").complete(_PROMPTS, sampling)
    assert served._server._process.pid == process


def test_a_server_that_slept_samples_as_before(served, shipped):
    engine, greedy = VllmEngine(served), Sampling(8, (_END,), 0.0)
    first = engine.complete(_PROMPTS, greedy)
    served.sleep()
    assert served._server._client.get("/is_sleeping").json() == {"is_sleeping": True}
    assert engine.complete(_PROMPTS, greedy) == first
    assert served._server._client.get("/is_sleeping").json() == {"is_sleeping": False}


@pytest.mark.series
def test_a_model_that_two_processes_divide_as_two_gpus_would_has_the_same_logprobs(shipped, tmp_path):
    here, options = settings().model_copy(update={"home": tmp_path}), ServerOptions("float32", 64, gpus=(0, 1))
    server = VllmServer(here, "divided", "shipped", shipped.save, options)
    try:
        answers = server.complete(_PROMPTS, Sampling(6, (_END,), 0.8))
    finally:
        server.close()
    for prompt, one in zip(_PROMPTS, answers, strict=True):
        table = true_logprobs(shipped, [*prompt, *one.ids], 0.8)
        expected = [table[len(prompt) + i - 1, token].item() for i, token in enumerate(one.ids)]
        assert one.logprobs == pytest.approx(expected, abs=1e-3)


def test_streams_that_are_full_are_cut_where_the_torch_engine_cuts_them(served, shipped):
    greedy = Sampling(6, (), 0.0)
    torch_engine = TorchEngine(weights_of(shipped.network, torch.float32), 0, "shipped", max_tokens=_MAX_TOKENS)
    found = []
    for engine in (VllmEngine(served), torch_engine):
        streams = engine.open(4)
        streams.extend(range(4), [[5] * 20, [6, 7] * 499, [7] * 1_000, [8] * 1_500])
        found.append([replace(one, logprobs=[]) for one in streams.generate(range(4), greedy)])
    assert found[0] == found[1]
    assert [(len(one.ids), one.out_of_room) for one in found[0]] == [(6, False), (2, True), (0, True), (0, True)]
    with pytest.raises(EngineError, match=r"(?s)answers /v1/completions with 400.*1000"):
        served.complete([[5] * 1_001], greedy)


def test_a_server_that_hangs_amid_an_answer_is_started_anew_and_nothing_is_lost(served, shipped, capfd):
    many, long = [[5, 6, 7 + i] for i in range(50)], Sampling(400, (shipped.format.end_id,), 1.5)
    streams = VllmEngine(served).open(len(many))
    streams.extend(range(len(many)), many)
    stopped = threading.Timer(0.3, _stop_group, [served])
    stopped.start()
    sampled = streams.generate(range(len(many)), long)
    assert stopped.finished.is_set()
    assert "restarted vLLM for the test: vLLM does not answer" in capfd.readouterr().out
    assert all(one.ended or len(one.ids) == 400 for one in sampled)
    assert "most recent call first" in served._server._log.read_text()


def _stop_group(served: ServedModel) -> None:
    for process in psutil.Process(served._server._process.pid).children(recursive=True):
        process.send_signal(signal.SIGSTOP)


def test_a_server_that_cannot_start_says_why(tmp_path):
    with pytest.raises(EngineError, match=r"(?s)does not start.*broken\.log.*config\.json"):
        VllmServer(settings().model_copy(update={"home": tmp_path}), "broken", "nothing", Path.mkdir, ServerOptions())


def test_the_server_ends_with_its_parent_however_that_ends(tmp_path):
    script = (
        "import os, signal; from infra.engines.vllm_command import ServerOptions; from infra.engines.vllm_server import VllmServer;"
        "from infra.settings import settings; from models.network.language_model import load_model; from tasks.backbones.find_backbone import SHIPPED;"
        "server = VllmServer(settings(), 'test', 'shipped', load_model(SHIPPED / 'textworld-tiny').save, ServerOptions());"
        "print(server._folder.name, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script], env=environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    folder, deadline = killed.stdout.strip(), time.monotonic() + 30
    while (left := _processes_about(folder)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert not left


def _processes_about(folder: str) -> list[str]:
    commands = (one.info["cmdline"] or () for one in psutil.process_iter(["cmdline"]))
    return [" ".join(command) for command in commands if any(folder in part for part in command)]


def test_the_whole_loop_runs_through_one_server_of_both_roles_though_it_dies(tmp_path, prefect_server):
    changes = changed(*TOY, *_FEW, "engine.name=vllm", "training.lora_rank=4")
    running = subprocess.Popen(
        [COMMAND, "run", "textworld-tiny", *changes, "--only", "dream"],
        env=environment(tmp_path) | {"PREFECT_API_URL": prefect_server},
        stderr=subprocess.PIPE,
        text=True,
    )
    _kill_server_of_both_roles(tmp_path, running)
    _, told = running.communicate(timeout=1800)
    assert running.returncode == 0, told
    assert "restarted vLLM for the adapters: vLLM does not answer" in told


def _kill_server_of_both_roles(home: Path, running: subprocess.Popen[str]) -> None:
    """Kill the server as soon as it has adapters of the policy and of the experience model."""
    while running.poll() is None:
        for server in [one for one in psutil.process_iter(["cmdline", "environ"]) if _is_server(one, home)]:
            folder = Path(server.info["cmdline"][server.info["cmdline"].index("--uds") + 1]).parent
            if len([one for one in folder.iterdir() if one.name.isalnum() and len(one.name) == 64]) == 2:
                os.killpg(server.pid, signal.SIGKILL)
                return
        time.sleep(0.2)
    raise AssertionError(running.communicate())


def _is_server(process: psutil.Process, home: Path) -> bool:
    is_vllm = (process.info["cmdline"] or [])[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    return is_vllm and (process.info["environ"] or {}).get("DREAMGYM_HOME") == str(home)
