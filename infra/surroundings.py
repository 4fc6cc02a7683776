"""The surroundings of a command: variables, temporary files, umask and text encoding that would mislead it.

Set up once, before libraries read them; processes that it starts inherit them. Calls from Python leave the surroundings of
the caller as they are, apart from proxies. `dreamgym doctor` names what was changed or is not used.
"""

import codecs
import locale
import os
import sys
import tempfile
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path

from infra.proxies import settle_proxies

_SERVER = "PREFECT_API_URL"
_MLFLOW_OF_OTHER_WORK = (
    *("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_WORKSPACE"),
    *("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"),
)
"""Variables that would send our entries elsewhere: DREAMGYM_TRACKING_URI names our server."""
_PREFECT_OF_OTHER_WORK = (
    *("PREFECT_HOME", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH", "PREFECT_API_KEY", "PREFECT_API_AUTH_STRING"),
    *("PREFECT_LOCAL_STORAGE_PATH", "PREFECT_RESULTS_LOCAL_STORAGE_PATH", "PREFECT_RESULTS_PERSIST_BY_DEFAULT"),
    *("PREFECT_TASKS_DEFAULT_RETRIES", "PREFECT_FLOWS_DEFAULT_RETRIES"),
    *("PREFECT_API_DATABASE_CONNECTION_URL", "PREFECT_SERVER_DATABASE_CONNECTION_URL"),
)
"""Variables that would give embedded Prefect the places, the account or the retries of another one."""
_OWNER = 0o700
_changes: list[str] = []
"""Sentences about what was changed in this process."""


def settle() -> None:
    """Set up the surroundings of this command."""
    use_proxies_as_clients_can()
    _forget_other_work()
    _find_temporary_folder()
    _keep_own_files_open()


def read_text_as_utf8() -> None:
    """Begin this command anew in Python's UTF-8 mode if the locale has another encoding; let no output fail for its own."""
    if codecs.lookup(locale.getpreferredencoding(do_setlocale=False)).name != "utf-8" and not sys.flags.utf8_mode:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, "PYTHONUTF8": "1"})  # noqa: S606
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def changes() -> list[str]:
    """Return what was changed in this process's surroundings, and what is not used of them, a sentence each."""
    return list(_changes)


def use_proxies_as_clients_can() -> None:
    """Leave proxies to clients as far as they can use them, and none of them for this machine."""
    _changes.extend(settle_proxies())


def _forget_other_work() -> None:
    """Remove variables of other MLflow runs, and of another Prefect unless its server is named."""
    found = [name for name in _names_of_other_work() if os.environ.pop(name, None) is not None]
    if found:
        _changes.append(f"{', '.join(sorted(found))} of other work are not used")


def _names_of_other_work() -> Iterator[str]:
    yield from _MLFLOW_OF_OTHER_WORK
    if not os.environ.get(_SERVER):
        yield from _PREFECT_OF_OTHER_WORK


def _find_temporary_folder() -> None:
    """Name the folder for temporary files that Python finds if TMPDIR is none: other libraries do not look for one."""
    named = os.environ.get("TMPDIR")
    if named and not Path(named).is_dir():
        os.environ["TMPDIR"] = tempfile.gettempdir()
        _changes.append(f"TMPDIR is no folder: temporary files are in {os.environ['TMPDIR']}")


def _keep_own_files_open() -> None:
    """Leave the owner's rights in the umask, so that a process can read the files that it writes."""
    given = os.umask(0o077)
    os.umask(given & ~_OWNER)
    if given & _OWNER:
        _changes.append(f"the umask {given:03o} would keep us from our own files: it is {given & ~_OWNER:03o}")
