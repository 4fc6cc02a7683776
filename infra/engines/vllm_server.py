"""vLLM server of one model in a child process: start, query, load other weights, stop. It ends when this process ends.

It listens on a socket file in a private folder, so that no other user can reach it: the vLLM endpoints that change
weights have no authentication.
"""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from infra.engines.vllm_answer import sampled_in
from infra.engines.vllm_command import MODEL, ServerOptions, command_of, environment_of
from infra.engines.watchdog import watched
from infra.settings import Settings
from schemas.errors import EngineError, EngineUnavailable
from schemas.sampling import Sampled, Sampling

Fetch = Callable[[Path], object]
"""Function that writes a model's files into a folder."""

_READY_WITHIN_S = 900
_HEARTBEATS = ("vllm:prompt_tokens_total", "vllm:generation_tokens_total")
"""Counters that grow while the server works."""
_UNLIMITED = httpx.Limits()
"""As many connections as threads that ask side by side."""
SILENCE_S = 300.0
_LOADED_WITHIN_S = 1800.0
_LOG_TAIL = 2000


class VllmServer:
    """One vLLM server. Its weights may change, but not their architecture."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        weights: str,
        fetch: Fetch,
        options: ServerOptions,
        silence_s: float = SILENCE_S,
    ) -> None:
        """Start the server and wait until it is healthy.

        Args:
            settings: Path of the Python that has vLLM, number of threads and share of GPU memory.
            name: Name of the log file.
            weights: Digest of the model.
            fetch: Writes the model's files into a folder.
            options: How it computes.
            silence_s: Seconds without a heartbeat during a request after which the server is aborted.

        Raises:
            EngineError: the server does not start.
        """
        self._silence_s = silence_s
        self._folder = tempfile.TemporaryDirectory(prefix="dreamgym-vllm-", ignore_cleanup_errors=True)
        self._loaded: Path | None = None
        self._log = settings.home / "engines" / f"{name.replace(' ', '-')}.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        socket = Path(self._folder.name) / "socket"
        self._process = self._started(settings, self._fetched("first", fetch), socket, options)
        self._client = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(socket), limits=_UNLIMITED),
            base_url="http://vllm",
            timeout=httpx.Timeout(10, read=None),
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

    def _started(
        self, settings: Settings, model: Path, socket: Path, options: ServerOptions
    ) -> "subprocess.Popen[bytes]":
        with self._log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603
                command_of(settings, model, socket, options),
                cwd=model.parent,  # vLLM caches compiled code by the path as given: a relative one is always the same
                env=environment_of(settings, options),
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

    def sleep(self) -> None:
        """Give back the GPU memory, with the cache of prefixes; the weights wait in the machine's memory. Raises as `load`."""
        self._post("/sleep?level=1")

    def wake(self) -> None:
        """Take GPU memory again after `sleep`; raises as `load`."""
        self._post("/wake_up")

    def complete(self, prompts: Sequence[Sequence[int]], sampling: Sampling, adapters: str = "") -> list[Sampled]:
        """Sample a continuation of each prompt, with the adapters of this digest if one is given.

        Raises:
            EngineUnavailable: the server died, hangs or returns a malformed answer.
            EngineError: the server refuses.
        """
        answer = self._post(
            "/v1/completions",
            {
                "model": adapters or MODEL,
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
