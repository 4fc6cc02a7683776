"""Folder of the backbone that a recipe names, and its digest, so that other content gives another key."""

import json
from pathlib import Path

from schemas.errors import InputError, IntegrityError
from schemas.recipes.digests import digest_of
from schemas.recipes.networks import BackboneRecipe
from tasks.backbones.gguf_backbone import gguf_backbone
from tasks.running.pins import file_digests

SHIPPED = Path(__file__).parent.parent.parent / "models" / "backbones"
"""Folder with one subfolder per shipped backbone: safetensors, tokenizer, card, and digests.json."""


def backbone_folder(recipe: BackboneRecipe) -> Path | None:
    """Return the backbone's folder, if it is shipped, a folder, or converted from GGUF; else None.

    Raises:
        InputError: it is to be converted from GGUF, and cannot be.
        IntegrityError: its weights are not the ones that were pinned.
    """
    for folder in (SHIPPED / recipe.model, Path(recipe.model)):
        if (folder / "config.json").is_file():
            return folder
    return gguf_backbone(recipe.model)


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
