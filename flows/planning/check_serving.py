"""Check the arguments of `dreamgym serve` before slow imports, so that a mistake is reported at once."""

import socket
from typing import Any

from flows.runs.find_run import find_run
from infra.settings import settings
from infra.storage.run_records import records
from schemas.errors import InputError
from schemas.plain import restored

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def find_dream(name: str | None) -> dict[str, Any]:
    """Return the summary of the latest run with this experience model, or of the run with this name.

    Args:
        name: Start of an experience model's digest or of a run's id; None: the latest run.

    Raises:
        InputError: none or several match, or the run was stopped before it had an experience model.
    """
    found: dict[str, dict[str, Any]] = {}
    for summary in records() if name else ():
        model = restored(summary.get("lineage", {})).get("experience_model")
        if model and name and model.sha256.startswith(name):
            found[model.sha256] = summary
    if len(found) > 1:
        raise InputError(f"experience models that begin with {name!r}: {', '.join(found)}; give more of one")
    summary = next(iter(found.values())) if found else find_run(name)
    if "experience_model" not in summary["lineage"]:
        raise InputError(f"run {summary['run_id']} has no experience model yet: dreamgym run it further first")
    return summary


def require_place(host: str, port: int) -> None:
    """Refuse an address that strangers could reach without a token, or that is in use.

    Raises:
        InputError: it is one of these.
    """
    if host not in _LOOPBACK and not settings().serve_token.get_secret_value():
        raise InputError(f"anyone who reaches {host} could play: set DREAMGYM_SERVE_TOKEN, or serve on 127.0.0.1")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise InputError(
                f"cannot serve at {host}:{port}: {error.strerror}. Choose another with --host or --port"
            ) from None
