"""Command line and environment of a vLLM server."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.engines.vllm_environment import has_gpu, vllm_python
from infra.settings import Settings

MODEL = "dreamgym"
"""Name of the served model in requests."""
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "WARNING"}
_AS_MANY_AS_ASKED = {"VLLM_MAX_COMPLETION_PROMPTS": str(2**31 - 1)}
"""Maximum number of prompts per request; without it vLLM refuses more than 1,024."""
_CHANGEABLE = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
"""Weights and adapters can be changed, and memory given back, by requests."""
_ON_CPU = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Maximum ranks of adapters that vLLM can be set to."""
_MAX_ADAPTERS = 2
"""Maximum number of adapters in a batch: those of the policy and of the experience model."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of a vLLM server."""

    dtype: str = "auto"
    """Data type of the weights."""
    max_tokens: int | None = None
    """Tokens of a prompt and its answer, one of which must fit into vLLM's cache; None: the model's whole context."""
    adapter_rank: int = 0
    """Maximum rank of adapters; 0: it takes none."""
    gpus: tuple[int, ...] = ()
    """GPUs among which the model is divided, counted among those that this process sees; none: the first."""
    sleeps: bool = False
    """Whether it gives back its GPU memory while it sleeps."""


def command_of(settings: Settings, model: Path, socket: Path, options: ServerOptions) -> list[str]:
    """Return the command that serves the model in a folder on a socket file; it ends with this process.

    Raises:
        EngineError: vLLM is not there and cannot be installed.
    """
    return [
        *(sys.executable, "-m", "infra.running.guard"),
        *(str(vllm_python(settings).absolute()), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", model.name, "--served-model-name", MODEL, "--uds", str(socket)),
        *("--dtype", options.dtype, "--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"),
        *("--enable-prefix-caching", "--uvicorn-log-level", "warning"),
        *("--gpu-memory-utilization", str(settings.vllm_gpu_share)),
        *_optional(options),
    ]


def _optional(options: ServerOptions) -> Iterator[str]:
    if options.max_tokens is not None:
        yield from ("--max-model-len", str(options.max_tokens))
    if rank := options.adapter_rank:
        largest = next((one for one in _RANKS if one >= rank), rank)
        yield from ("--enable-lora", "--max-loras", str(_MAX_ADAPTERS), "--max-lora-rank", str(largest))
    if len(options.gpus) > 1:
        yield from ("--tensor-parallel-size", str(len(options.gpus)))
    if options.sleeps and has_gpu():
        yield "--enable-sleep-mode"


def environment_of(settings: Settings, options: ServerOptions) -> dict[str, str]:
    """Return the environment variables of a server, with the GPUs that it may use."""
    threads = {"OMP_NUM_THREADS": str(settings.num_threads)}
    return {**os.environ, **_QUIET, **_AS_MANY_AS_ASKED, **_ON_CPU, **_CHANGEABLE, **threads, **_visible(options.gpus)}


def _visible(gpus: tuple[int, ...]) -> Mapping[str, str]:
    """Return the variable that shows a server these GPUs of ours; ours may be some of the machine's."""
    ours = [name for name in os.environ.get(_VISIBLE, "").split(",") if name]
    return {_VISIBLE: ",".join(ours[gpu] if ours else str(gpu) for gpu in gpus)} if gpus else {}
