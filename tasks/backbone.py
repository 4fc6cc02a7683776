"""Fetch the backbone that a recipe names: shipped with the project, a folder, or a hub model."""

import hashlib
import json
from pathlib import Path

from infra.doors import cycle
from models.backbone import load_model
from schemas.errors import InputError, IntegrityError
from schemas.recipe import BackboneRecipe, digest_of
from schemas.records import Reference
from tasks.keep import put_model
from tasks.pins import file_digests
from tasks.versioned import versioned_task

SHIPPED = Path(__file__).parent.parent / "models" / "backbones"
"""One folder per shipped backbone: safetensors, tokenizer, card, and digests.json."""


@versioned_task(version=1)
def fetch_backbone(recipe: BackboneRecipe, files_sha256: str) -> Reference:
    """The backbone as an object of ours.

    Args:
        recipe: Names it.
        files_sha256: Digest of its files if it is a folder, part of the cache key.
    """
    with cycle().display.stage("backbone"):
        model = load_model(
            backbone_folder(recipe) or recipe.model, revision=recipe.revision, random_init=recipe.random_init
        )
        return put_model(model, name=recipe.model)


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


def write_digests(folder: Path) -> None:
    """Record what the files that are loaded must be."""
    loaded = [
        path
        for path in sorted(folder.iterdir())
        if path.name != "digests.json" and path.suffix in (".json", ".safetensors")
    ]
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in loaded}
    (folder / "digests.json").write_text(json.dumps(digests, indent=1))
