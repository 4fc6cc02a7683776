"""Names in MLflow: of our experiment, and of metrics and parameters in a form that it takes."""

import hashlib
import posixpath
import re

EXPERIMENT = "dreamgym"
_REFUSED = re.compile(r"[^/\w.\- :]")
_MAX_LENGTH = 250
_DIGEST_LENGTH = 8


def tracked_name(name: str) -> str:
    """Return a name with each character that MLflow refuses as its code, `_26_` for `&`; most names stay as they are.

    A name that is too long ends in its digest.
    """
    taken = _REFUSED.sub(_code, name)
    if posixpath.normpath(taken) != taken or taken.startswith(("/", "..")):
        taken = taken.replace("/", "_2f_").replace("..", "_2e__2e_")
    if len(taken) <= _MAX_LENGTH:
        return taken
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{taken[: _MAX_LENGTH - _DIGEST_LENGTH - 1]}-{digest}"


def _code(character: re.Match[str]) -> str:
    return f"_{ord(character[0]):x}_"
