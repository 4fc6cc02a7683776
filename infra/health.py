"""Health checks of a place where runs execute: versions, disk, stores, servers, clocks, secrets."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from pathlib import Path

import httpx
from pydantic import SecretStr

from infra.files.durable_files import write_durably
from infra.running.reachable import require_server
from infra.settings import Settings
from infra.storage.blobs import open_blobs, require_conditional_puts
from infra.surroundings import changes
from infra.tracking.embedded_mlflow import mended_by_the_next_run
from schemas.errors import DreamGymError

_PACKAGES = ("torch", "transformers", "prefect", "mlflow", "lancedb", "textworld")
_MIN_FREE_GIB = 2
_MAX_SKEW_S = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check."""

    what: str
    fine: bool
    detail: str


def findings(settings: Settings) -> Iterator[Finding]:
    """Run all checks, the quick ones first."""
    yield Finding("versions", True, ", ".join(f"{name} {version(name)}" for name in _PACKAGES))
    for what, look in _LOOKS.items():
        try:
            yield Finding(what, True, look(settings))
        except (DreamGymError, OSError, httpx.HTTPError) as error:
            yield Finding(what, False, str(error))


def _home(settings: Settings) -> str:
    folder = settings.home.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    write_durably(folder / ".doctor", b"")
    (folder / ".doctor").unlink()
    return f"{folder} can be written"


def _disk(settings: Settings) -> str:
    free_gib = shutil.disk_usage(settings.home.absolute()).free / 2**30
    if free_gib < _MIN_FREE_GIB:
        raise OSError(
            f"only {free_gib:.1f} GiB free where {settings.home.absolute()} is; a cycle may need {_MIN_FREE_GIB}"
        )
    return f"{free_gib:.0f} GiB free"


def _secrets(settings: Settings) -> str:
    given = {name: getattr(settings, name) for name in type(settings).model_fields}
    secret = {name: value.get_secret_value() for name, value in given.items() if isinstance(value, SecretStr)}
    empty = [f"DREAMGYM_{name.upper()}" for name, value in secret.items() if not value]
    if empty := [name for name in empty if name in os.environ]:
        raise OSError(f"{', '.join(empty)} is set but empty: give it a value, or unset it")
    return ", ".join(name for name, value in secret.items() if value) or "none set, none needed"


def _objects(settings: Settings) -> str:
    require_conditional_puts(open_blobs(settings), num_races=5)
    return f"{settings.object_store_uri} can be written and creates each key once"


def _mlflow(settings: Settings) -> str:
    require_server("MLflow", settings.tracking, "/health")
    if not settings.tracking_uri.get_secret_value() and (mended := mended_by_the_next_run(settings)):
        return f"{settings.tracking_shown} {mended}"
    return f"{settings.tracking_shown} {_clock(settings.tracking, '/health')}"


def _prefect(_settings: Settings) -> str:
    if not (url := os.environ.get("PREFECT_API_URL")):
        return "embedded, started by each run"
    require_server("Prefect", url, "/api/health")
    user, _, password = os.environ.get("PREFECT_API_AUTH_STRING", "").partition(":")
    httpx.get(f"{url}/version", timeout=2, auth=(user, password) if user else None).raise_for_status()
    return f"{url} {_clock(url.removesuffix('/api'), '/api/health')}"


def _clock(url: str, path: str) -> str:
    """Describe a server and check its clock against ours: leases, schedules and signatures need them to agree.

    Raises:
        OSError: the clocks differ by more than five seconds.
    """
    if not url.startswith("http"):
        return "is a file"
    asked = time.time()
    said = httpx.get(f"{url}{path}", timeout=2).headers.get("date", "")
    if not said:
        return "answers"
    skew_s = parsedate_to_datetime(said).timestamp() - asked
    if abs(skew_s) > _MAX_SKEW_S:
        raise OSError(f"the clock of {url} is {skew_s:+.0f} s from this machine's: synchronise them")
    return "answers, clocks agree"


def _surroundings(_settings: Settings) -> str:
    return "; ".join(changes()) or "nothing in the way"


def _gpu(_settings: Settings) -> str:
    if not (tool := shutil.which("nvidia-smi")):
        return "none; the CPU does"
    asked = [tool, "--query-gpu=name,memory.free", "--format=csv,noheader"]
    return subprocess.run(asked, capture_output=True, text=True, check=False, timeout=10).stdout.strip()  # noqa: S603


def _stack(settings: Settings) -> str:
    file: Path = settings.home / "stack" / "environment"
    return f"of this home, {file}" if file.exists() else "none in this home"


_LOOKS: dict[str, Callable[[Settings], str]] = {
    "surroundings": _surroundings,
    "home": _home,
    "disk": _disk,
    "secrets": _secrets,
    "server stack": _stack,
    "objects": _objects,
    "MLflow": _mlflow,
    "Prefect": _prefect,
    "GPU": _gpu,
}
