"""vLLM server of one model in a child process: start, query, load other weights, stop. It ends when this process ends.

It listens on a socket file in a private folder, so that no other user can reach it: the vLLM endpoints that change
weights have no authentication.
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
"""Function that writes a model's files into a folder."""

_MODEL = "dreamgym"
_READY_WITHIN_S = 900
_HEARTBEATS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
"""Counters that grow while the server works."""
SILENCE_S = 300.0
_LOADED_WITHIN_S = 1800.0
_LOG_TAIL = 2000
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
_AS_MANY_AS_ASKED = {"VLLM_MAX_COMPLETION_PROMPTS": str(2**31 - 1)}
"""Maximum number of prompts per request; without it vLLM refuses more than 1,024."""
_CHANGEABLE = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
"""Weights and adapters can be changed by requests."""
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Maximum ranks of adapters that vLLM can be set to."""
_MAX_ADAPTERS = 2
"""Maximum number of adapters in a batch: those of the policy and of the experience model."""
_ON_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}


class VllmServer:
    """One vLLM server. Its weights may change, but not their architecture."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        weights: str,
        fetch: Fetch,
        dtype: str = "auto",
        silence_s: float = SILENCE_S,
        max_tokens: int | None = None,
        adapter_rank: int = 0,
    ) -> None:
        """Start the server and wait until it is healthy.

        Args:
            settings: Path of the Python that has vLLM, number of threads and share of GPU memory.
            name: Name of the log file.
            weights: Digest of the model.
            fetch: Writes the model's files into a folder.
            dtype: Data type for sampling.
            silence_s: Seconds without a heartbeat during a request after which the server is aborted.
            max_tokens: Tokens of a prompt and its answer, one of which must fit into vLLM's cache; None: the model's
                whole context.
            adapter_rank: Maximum rank of adapters; 0: it takes none.

        Raises:
            EngineError: the server does not start.
        """
        self._silence_s, self._max_tokens, self._adapter_rank = silence_s, max_tokens, adapter_rank
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
        """True if the server's process is running."""
        return self._process.poll() is None

    def _fetched(self, name: str, fetch: Fetch) -> Path:
        folder = Path(self._folder.name) / name
        fetch(folder)
        return folder

    def _fetched_alive(self, name: str, fetch: Fetch) -> Path:
        """Fetch files for the running server; a dead one has no folder any more."""
        if not self.is_alive:
            raise EngineUnavailable(self._message("has died"))
        return self._fetched(name, fetch)

    def _started(self, settings: Settings, model: Path, dtype: str, socket: Path) -> "subprocess.Popen[bytes]":
        command = [
            *(sys.executable, "-m", "infra.running.guard"),
            *(str(vllm_python(settings).absolute()), "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", model.name, "--served-model-name", _MODEL, "--uds", str(socket)),
            *("--dtype", dtype, "--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"),
            *("--enable-prefix-caching", "--uvicorn-log-level", "warning"),
            *("--gpu-memory-utilization", str(settings.vllm_gpu_share)),
            *(() if self._max_tokens is None else ("--max-model-len", str(self._max_tokens))),
            *self._adapter_arguments(),
        ]
        threads = {"OMP_NUM_THREADS": str(settings.num_threads)}
        environment = {**os.environ, **_QUIET, **_AS_MANY_AS_ASKED, **_ON_CPU, **_CHANGEABLE, **threads}
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603
                command,
                cwd=model.parent,  # vLLM caches compiled code by the path as given: a relative one is always the same
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _adapter_arguments(self) -> list[str]:
        if not self._adapter_rank:
            return []
        rank = next((one for one in _RANKS if one >= self._adapter_rank), self._adapter_rank)
        return ["--enable-lora", "--max-loras", str(_MAX_ADAPTERS), "--max-lora-rank", str(rank)]

    def _await_health(self) -> None:
        deadline = time.monotonic() + _READY_WITHIN_S
        while self.is_alive and time.monotonic() < deadline:
            try:
                if self._client.get("/health", timeout=5).is_success:
                    return
            except httpx.TransportError:
                time.sleep(0.5)
        self.close()
        raise EngineError(self._message("does not start"))

    def load(self, weights: str, fetch: Fetch) -> None:
        """Load other weights of the same architecture, without a restart.

        Raises:
            EngineUnavailable: the server died or hangs.
            EngineError: the server refuses.
        """
        folder = self._fetched_alive(weights, fetch)
        self._post("/pause")
        self._post("/collective_rpc", {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}})
        self._post("/reset_prefix_cache")
        self._post("/resume")
        if self._loaded:
            shutil.rmtree(self._loaded)
        self._loaded, self.weights = folder, weights

    def add_adapters(self, digest: str, fetch: Fetch) -> None:
        """Load adapters over the model, to sample with on request; raises as `load`."""
        folder = self._fetched_alive(digest, fetch)
        self._post("/v1/load_lora_adapter", {"lora_name": digest, "lora_path": str(folder)})

    def remove_adapters(self, digest: str) -> None:
        """Unload adapters; raises as `load`."""
        self._post("/v1/unload_lora_adapter", {"lora_name": digest})
        shutil.rmtree(Path(self._folder.name) / digest)

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling, adapters: str = "") -> list[Sampled]:
        """Sample a continuation of each prompt, with the adapters of this digest if one is given.

        Raises:
            EngineUnavailable: the server died, hangs or returns a malformed answer.
            EngineError: the server refuses.
        """
        answer = self._post(
            "/v1/completions",
            {
                "model": adapters or _MODEL,
                "prompt": [list(ids) for ids in prompts],
                "max_tokens": sampling.max_new_tokens,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "stop_token_ids": list(sampling.end_ids),
                "ignore_eos": True,  # `end_ids` mark the end, not the EOS of the model
                "logprobs": 0,
                "return_token_ids": True,
            },
            self._silence_s,
        )
        return sampled_in(answer.content, len(prompts), sampling, adapters or self.weights)

    def _post(
        self, path: str, body: dict[str, Any] | None = None, silence_s: float = _LOADED_WITHIN_S
    ) -> httpx.Response:
        try:
            answer = watched(lambda: self._client.post(path, json=body), self._heartbeat, self._abort, silence_s)
        except httpx.TransportError as error:
            raise EngineUnavailable(self._message(f"does not answer: {type(error).__name__}")) from error
        if not answer.is_success:
            error = EngineUnavailable if answer.is_server_error else EngineError
            raise error(self._message(f"answers {path} with {answer.status_code}: {answer.text[:500]}"))
        return answer

    def _heartbeat(self) -> str:
        """Return the progress counters as text; it changes whenever the server has processed tokens."""
        counters = self._client.get("/metrics", timeout=10).text
        return "".join(line for line in counters.splitlines(keepends=True) if line.startswith(_HEARTBEATS))

    def _abort(self) -> None:
        """Abort the server; each of its threads writes its stack to the log."""
        self._process.send_signal(signal.SIGUSR1)

    def _message(self, what: str) -> str:
        tail = self._log.read_text(errors="replace")[-_LOG_TAIL:]
        return f"vLLM {what}. The end of {self._log}:\n{tail}"

    def close(self) -> None:
        """Stop the server with all its child processes."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()
