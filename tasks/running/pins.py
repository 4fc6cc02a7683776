"""Pins: what a recipe names by folder or hub id, as digests or commits, so that another content is another key."""

import hashlib
import json
from pathlib import Path

from schemas.errors import InputError, IntegrityError
from schemas.recipes.digests import digest_of
from schemas.recipes.recipe import BackboneRecipe, Recipe, RetrievalRecipe

SHIPPED = Path(__file__).parent.parent.parent / "models" / "backbones"
"""One folder per shipped backbone: safetensors, tokenizer, card, and digests.json."""


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


def backbone_folder(recipe: BackboneRecipe) -> Path | None:
    """Where the backbone lies, if it is shipped or a folder."""
    for folder in (SHIPPED / recipe.model, Path(recipe.model)):
        if (folder / "config.json").is_file():
            return folder
    return None


def folder_digest(recipe: BackboneRecipe) -> str:
    """Digest over the backbone's files; empty for a hub model, whose revision is in the recipe, and for one of the logs.

    Raises:
        InputError: a hub model without its revision.
        IntegrityError: a shipped file is not what digests.json says.
    """
    if recipe.scratch:
        return ""
    folder = backbone_folder(recipe)
    if folder is None and recipe.revision is None:
        raise InputError(
            f"backbone.model {recipe.model!r} is no folder and not shipped; for a hub model set backbone.revision to the "
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
    """The recipe with the encoder that it names by folder pinned to today's content."""
    return recipe.model_copy(update={"retrieval": pin_encoder(recipe.retrieval)})
