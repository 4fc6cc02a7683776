"""A vLLM server of one model, beside this process: started, asked, given other weights, ended with us.

It listens on a socket file in a folder of our own, so that nobody else can reach it: changing weights needs
endpoints of vLLM that ask nobody for a password.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from infra.engines.vllm_answer import sampled_in
from infra.engines.vllm_environment import vllm_python
from infra.engines.watchdog import watched
from infra.settings import Settings
from schemas.errors import EngineError, EngineUnavailable
from schemas.sampling import Sampled, Sampling

Fetch = Callable[[Path], object]
"""Writes a model's files into a folder."""

_MODEL = "dreamgym"
_READY_WITHIN_S = 900
_HEARTBEATS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
"""Counters that grow while it works."""
SILENCE_S = 300.0
_LOADED_WITHIN_S = 1800.0
_LOG_TAIL = 2000
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
_AS_MANY_AS_ASKED = {"VLLM_MAX_COMPLETION_PROMPTS": str(2**31 - 1)}
"""Prompts at a time; it refuses more than 1,024 of a stranger."""
_ON_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}


class VllmServer:
    """One server; of its model the weights may change, the architecture not."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        weights: str,
        fetch: Fetch,
        dtype: str = "auto",
        silence_s: float = SILENCE_S,
    ) -> None:
        """Start it and wait until it answers.

        Args:
            settings: Say which Python has vLLM, and how many threads it may use.
            name: For its log.
            weights: Digest of the model.
            fetch: Brings the model's files.
            dtype: That it samples in.
            silence_s: After so long without a heartbeat in which it should have answered, it is aborted.

        Raises:
            EngineError: it does not start.
        """
        self._silence_s = silence_s
        self._folder = tempfile.TemporaryDirectory(prefix="dreamgym-vllm-", ignore_cleanup_errors=True)
        self._loaded: Path | None = None
        self._log = settings.home / "engines" / f"{name.replace(' ', '-')}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        socket = Path(self._folder.name) / "socket"
        self._process = self._started(settings, self._fetched("first", fetch), dtype, socket)
        self._client = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://vllm", timeout=httpx.Timeout(10, read=None)
        )
        self.weights = weights
        self._await_health()

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def _fetched(self, name: str, fetch: Fetch) -> Path:
        folder = Path(self._folder.name) / name
        fetch(folder)
        return folder

    def _started(self, settings: Settings, model: Path, dtype: str, socket: Path) -> "subprocess.Popen[bytes]":
        command = [
            *(sys.executable, "-m", "infra.running.guard"),
            *(str(vllm_python(settings).absolute()), "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", model.name, "--served-model-name", _MODEL, "--uds", str(socket)),
            *("--dtype", dtype, "--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"),
            *("--enable-prefix-caching", "--uvicorn-log-level", "warning"),
            *("--gpu-memory-utilization", str(settings.vllm_gpu_share)),
        ]
        threads = {"OMP_NUM_THREADS": str(settings.num_threads)}
        environment = {**os.environ, **_QUIET, **_AS_MANY_AS_ASKED, **_ON_CPU, **threads, "VLLM_SERVER_DEV_MODE": "1"}
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603
                command,
                cwd=model.parent,  # what is compiled is kept by the model's path as it is said: now the same for all
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await_health(self) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        while self.is_alive and time.monotonic() < deadline:
            try:
                if self._client.get("/health", timeout=5).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.5)
        self.close()
        raise EngineError(self._told("does not start"))

    def load(self, weights: str, fetch: Fetch) -> None:
        """Go on with other weights of the same architecture, without a restart.

        Raises:
            EngineUnavailable: it died, or hangs.
            EngineError: it refuses.
        """
        if not self.is_alive:
            raise EngineUnavailable(self._told("has died"))
        folder = self._fetched(weights, fetch)
        self._post("/pause")
        self._post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}})
        self._post("/reset_prefix_cache")
        self._post("/resume")
        if self._loaded:
            shutil.rmtree(self._loaded)
        self._loaded, self.weights = folder, weights

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Sampled]:
        """A continuation of each prompt.

        Raises:
            EngineUnavailable: it died, hangs or answers nonsense.
            EngineError: it refuses.
        """
        answer = self._post(
            "/v1/completions",
            {
                "model": _MODEL,
                "prompt": [list(ids) for ids in prompts],
                "max_tokens": sampling.max_new_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "stop_token_ids": [sampling.end_id] if sampling.end_id >= 0 else [],
                "ignore_eos": True,  # the end is what we say
                "logprobs": 0,
                "return_token_ids": True,
            },
            self._silence_s,
        )
        return sampled_in(answer.content, len(prompts), sampling, self.weights)

    def _post(
        self, path: str, body: dict[str, Any] | None = None, silence_s: float = _LOADED_WITHIN_S
    ) -> httpx.Response:
        try:
            answer = watched(lambda: self._client.post(path, json=body), self._heartbeat, self._abort, silence_s)
        except httpx.TransportError as error:
            raise EngineUnavailable(self._told(f"does not answer: {type(error).__name__}")) from error
        if not answer.is_success:
            error = EngineUnavailable if answer.is_server_error else EngineError
            raise error(self._told(f"answers {path} with {answer.status_code}: {answer.text[:500]}"))
        return answer

    def _heartbeat(self) -> str:
        """What differs from the last time if it did anything since."""
        counters = self._client.get("/metrics", timeout=10).text
        return "".join(line for line in counters.splitlines(keepends=True) if line.startswith(_HEARTBEATS))

    def _abort(self) -> None:
        """End it; where each of its threads stands is in its log then."""
        self._process.send_signal(signal.SIGUSR1)

    def _told(self, what: str) -> str:
        tail = self._log.read_text(errors="replace")[-_LOG_TAIL:]
        return f"vLLM {what}. The end of {self._log}:\n{tail}"

    def close(self) -> None:
        """End it, with all its processes."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()
