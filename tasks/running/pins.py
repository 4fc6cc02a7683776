"""Pins: digests or commits of encoders named by folder or hub id, so that other content gives another key."""

from pathlib import Path

from infra.files.digests import sha256_of
from schemas.errors import InputError
from schemas.recipes.data import RetrievalRecipe
from schemas.recipes.digests import digest_of
from schemas.recipes.recipe import Recipe


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in a folder, by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): sha256_of(path) for path in files}


def pin_encoder(retrieval: RetrievalRecipe) -> RetrievalRecipe:
    """Return the section with the revision of its encoder: for a folder, the digest of its files.

    Raises:
        InputError: there is neither the folder, nor a commit of a hub model.
    """
    folder = Path(retrieval.encoder)
    if folder.is_dir():
        return retrieval.model_copy(update={"revision": digest_of(file_digests(folder))})
    if retrieval.encoder != "hashing" and retrieval.revision is None:
        raise InputError(
            f"retrieval.encoder {retrieval.encoder!r} is not a folder; for a hub model set retrieval.revision to the "
            "commit hash, so that the run can be repeated"
        )
    return retrieval


def with_encoder_pinned(recipe: Recipe) -> Recipe:
    """Return the recipe with its encoder, if a folder, pinned to the folder's present content."""
    return recipe.model_copy(update={"retrieval": pin_encoder(recipe.retrieval)})
