"""A vLLM server of one model, beside this process: started, asked, given other weights, ended with us.

It listens on a socket file in a folder of our own, so that nobody else can reach it: changing weights needs
endpoints of vLLM that ask nobody for a password.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from infra.engines.vllm_environment import vllm_python
from infra.settings import Settings
from schemas.errors import EngineError
from schemas.sampling import Sampled, Sampling

Fetch = Callable[[Path], object]
"""Writes a model's files into a folder."""

_MODEL = "dreamgym"
_READY_WITHIN_S = 900
_ANSWER_WITHIN_S = 3600
_LOG_TAIL = 2000
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
_ON_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}


class VllmServer:
    """One server; of its model the weights may change, the architecture not."""

    def __init__(self, settings: Settings, name: str, weights: str, fetch: Fetch, dtype: str = "auto") -> None:
        """Start it and wait until it answers.

        Args:
            settings: Say which Python has vLLM, and how many threads it may use.
            name: For its log.
            weights: Digest of the model.
            fetch: Brings the model's files.
            dtype: That it samples in.

        Raises:
            EngineError: it does not start.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="dreamgym-vllm-", ignore_cleanup_errors=True)
        self._loaded: Path | None = None
        self._log = settings.home / "engines" / f"{name.replace(' ', '-')}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        socket = Path(self._folder.name) / "socket"
        self._process = self._started(settings, self._fetched("first", fetch), dtype, socket)
        self._client = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(socket)), base_url="http://vllm", timeout=_ANSWER_WITHIN_S
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
            *(sys.executable, "-m", "infra.guard"),
            *(str(vllm_python(settings)), "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(model), "--served-model-name", _MODEL, "--uds", str(socket)),
            *("--dtype", dtype, "--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"),
            *("--enable-prefix-caching", "--uvicorn-log-level", "warning"),
        ]
        threads = {"OMP_NUM_THREADS": str(settings.num_threads)}
        environment = {**os.environ, **_QUIET, **_ON_CPU, **threads, "VLLM_SERVER_DEV_MODE": "1"}
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603
                command, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
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
        raise self._error("does not start")

    def load(self, weights: str, fetch: Fetch) -> None:
        """Go on with other weights of the same architecture, without a restart."""
        folder = self._fetched(weights, fetch)
        self._post("/pause")
        self._post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}})
        self._post("/reset_prefix_cache")
        self._post("/resume")
        if self._loaded:
            shutil.rmtree(self._loaded)
        self._loaded, self.weights = folder, weights

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling) -> list[Sampled]:
        """A continuation of each prompt."""
        answer = self._post(
            "/v1/completions",
            {
                "model": _MODEL,
                "prompt": [list(ids) for ids in prompts],
                "max_tokens": sampling.max_new_tokens,
                "temperature": sampling.temperature,
                "stop_token_ids": [sampling.end_id],
                "logprobs": 0,
                "return_token_ids": True,
            },
        ).json()
        choices = sorted(answer["choices"], key=lambda one: one["index"])
        return [_sampled(one, sampling, self.weights) for one in choices]

    def _post(self, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        try:
            answer = self._client.post(path, json=body)
        except httpx.TransportError as error:
            raise self._error(f"does not answer: {type(error).__name__}") from error
        if not answer.is_success:
            raise self._error(f"answers {path} with {answer.status_code}: {answer.text[:500]}")
        return answer

    def _error(self, what: str) -> EngineError:
        tail = self._log.read_text(errors="replace")[-_LOG_TAIL:]
        return EngineError(f"vLLM {what}. The end of {self._log}:\n{tail}")

    def close(self) -> None:
        """End it, with all its processes."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def _sampled(choice: dict[str, Any], sampling: Sampling, weights: str) -> Sampled:
    ids = choice["token_ids"]
    logprobs = [0.0] * len(ids) if sampling.temperature == 0 else choice["logprobs"]["token_logprobs"]
    return Sampled(ids, logprobs, bool(ids) and ids[-1] == sampling.end_id, weights)
