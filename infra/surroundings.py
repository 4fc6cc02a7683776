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
from schemas.errors import InputError

_SERVER = "PREFECT_API_URL"
_MLFLOW_OF_OTHER_WORK = (
    *("MLFLOW_RUN_ID", "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_WORKSPACE"),
    *("MLFLOW_TRACKING_URI", "MLFLOW_REGISTRY_URI"),
)
"""Variables that would send our entries elsewhere: DREAMGYM_TRACKING_URI names our server."""
_PREFECT, _PREFECT_LOGGING = "PREFECT_", "PREFECT_LOGGING_"
"""Beginnings of Prefect's variables: only those of its logs leave embedded Prefect as it is meant to be."""
_FILES_OF_PREFECT = {".env": b"PREFECT_", "prefect.toml": b"", "pyproject.toml": b"[tool.prefect"}
"""Files of the working folder that Prefect reads, each with what makes it Prefect's."""
_OWNER = 0o700
_changes: list[str] = []
"""Sentences about what was changed in this process."""


def settle() -> None:
    """Set up the surroundings of this command.

    Raises:
        InputError: the working folder was removed.
    """
    _require_working_folder()
    use_proxies_as_clients_can()
    _forget_other_work()
    _name_files_of_prefect()
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


def _require_working_folder() -> None:
    """Refuse a folder that is gone; numerical libraries would abort the process."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("the working folder was removed: go to one that is there, and run again") from None


def _forget_other_work() -> None:
    """Remove variables of other MLflow runs, and of another Prefect unless its server is named."""
    found = [name for name in _names_of_other_work() if os.environ.pop(name, None) is not None]
    if found:
        _changes.append(f"{', '.join(sorted(found))} of other work are not used")


def _names_of_other_work() -> Iterator[str]:
    yield from _MLFLOW_OF_OTHER_WORK
    if not os.environ.get(_SERVER):
        prefect = [name for name in os.environ if name.startswith(_PREFECT)]
        yield from (name for name in prefect if not name.startswith(_PREFECT_LOGGING))


def _name_files_of_prefect() -> None:
    """Name the files of this folder that set up Prefect's client; its embedded server runs elsewhere."""
    found = [
        name for name, mark in _FILES_OF_PREFECT.items() if Path(name).is_file() and mark in Path(name).read_bytes()
    ]
    if found:
        _changes.append(f"Prefect reads settings from {' and '.join(found)} here: keep those of other work elsewhere")


def _find_temporary_folder() -> None:
    """Name the folder for temporary files that Python finds if TMPDIR is none: other libraries do not look for one."""
    named = os.environ.get("TMPDIR")
    if named and not _can_be_written(named):
        os.environ["TMPDIR"] = tempfile.gettempdir()
        _changes.append(f"TMPDIR is no folder that can be written: temporary files are in {os.environ['TMPDIR']}")


def _can_be_written(folder: str) -> bool:
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _keep_own_files_open() -> None:
    """Leave the owner's rights in the umask, so that a process can read the files that it writes."""
    given = os.umask(0o077)
    os.umask(given & ~_OWNER)
    if given & _OWNER:
        _changes.append(f"the umask {given:03o} would keep us from our own files: it is {given & ~_OWNER:03o}")
