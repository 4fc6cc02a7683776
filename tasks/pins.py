"""Pins: what a recipe names by folder or hub id, as digests or commits, so that another content is another key."""

import hashlib
from pathlib import Path

from schemas.errors import InputError
from schemas.recipe import RetrievalRecipe, digest_of


def file_digests(folder: Path) -> dict[str, str]:
    """Sha256 of every file in a folder, by its path within."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def pin_encoder(retrieval: RetrievalRecipe) -> RetrievalRecipe:
    """The section with the revision of its encoder: of a folder, the digest of its files.

    Raises:
        InputError: no such folder, and no commit of a hub model either.
    """
    folder = Path(retrieval.encoder)
    if folder.is_dir():
        return retrieval.model_copy(update={"revision": digest_of(file_digests(folder))})
    if retrieval.encoder != "hashing" and retrieval.revision is None:
        raise InputError(
            f"retrieval.encoder {retrieval.encoder!r} is no folder; for a hub model set retrieval.revision to the "
            "commit hash, so that the run can be repeated"
        )
    return retrieval
