"""Pins: digests or commits of what a recipe names by folder or hub id, so that other content gives another key."""

import hashlib
import json
from pathlib import Path

from schemas.errors import InputError, IntegrityError
from schemas.recipes.data import RetrievalRecipe
from schemas.recipes.digests import digest_of
from schemas.recipes.networks import BackboneRecipe
from schemas.recipes.recipe import Recipe

SHIPPED = Path(__file__).parent.parent.parent / "models" / "backbones"
"""Folder with one subfolder per shipped backbone: safetensors, tokenizer, card, and digests.json."""


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file in a folder, by relative path."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


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


def backbone_folder(recipe: BackboneRecipe) -> Path | None:
    """Return the backbone's folder, if it is shipped or a folder; else None."""
    for folder in (SHIPPED / recipe.model, Path(recipe.model)):
        if (folder / "config.json").is_file():
            return folder
    return None


def folder_digest(recipe: BackboneRecipe) -> str:
    """Return the digest of the backbone's files; empty for a hub model, pinned by revision, or one made from logs.

    Raises:
        InputError: a hub model has no revision.
        IntegrityError: a file does not match digests.json.
    """
    if recipe.scratch:
        return ""
    folder = backbone_folder(recipe)
    if folder is None and recipe.revision is None:
        raise InputError(
            f"backbone.model {recipe.model!r} is neither a folder nor shipped; for a hub model set backbone.revision to the "
            "commit hash, so that the run can be repeated"
        )
    if folder is None:
        return ""
    found = file_digests(folder)
    recorded = json.loads((folder / "digests.json").read_text()) if "digests.json" in found else {}
    for name, sha256 in recorded.items():
        if found.get(name) != sha256:
            raise IntegrityError(
                f"{folder / name} is missing or corrupt: its digest is not the one in digests.json. Restore the file"
            )
    return digest_of(found)


def with_encoder_pinned(recipe: Recipe) -> Recipe:
    """Return the recipe with its encoder, if a folder, pinned to the folder's present content."""
    return recipe.model_copy(update={"retrieval": pin_encoder(recipe.retrieval)})
