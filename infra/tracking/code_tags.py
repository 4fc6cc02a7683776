"""Tags of an MLflow run that identify its code, in addition to the digests in the cache keys of its tasks."""

import hashlib
from importlib.metadata import distributions
from pathlib import Path

from mlflow.utils.git_utils import get_git_commit
from mlflow.utils.mlflow_tags import MLFLOW_GIT_COMMIT


def code_tags() -> dict[str, str]:
    """Return the git commit, if this is a checkout, and the digest of the installed packages with their versions."""
    commit = git_commit()
    return {"lock_digest": _lock_digest()} | ({MLFLOW_GIT_COMMIT: commit} if commit else {})


def git_commit() -> str:
    """Return the git commit of the code; empty if this is no checkout."""
    return get_git_commit(str(Path(__file__).parent)) or ""


def _lock_digest() -> str:
    installed = sorted({f"{one.name}=={one.version}" for one in distributions()})
    return hashlib.sha256("\n".join(installed).encode()).hexdigest()
