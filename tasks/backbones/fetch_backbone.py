"""Fetch the backbone that a recipe names: shipped with the project, a folder, or a hub model."""

import json
from pathlib import Path

from infra.context import run_context
from infra.files.digests import sha256_of
from models.network.language_model import load_model
from schemas.recipes.networks import BackboneRecipe
from schemas.records import Reference
from tasks.backbones.find_backbone import backbone_folder
from tasks.running.artifacts import put_model
from tasks.running.versioned import versioned_task


@versioned_task
def fetch_backbone(recipe: BackboneRecipe, files_sha256: str) -> Reference:
    """Load the backbone, and store it.

    Args:
        recipe: Section that names the backbone.
        files_sha256: Digest of the backbone's files if it is a folder, part of the cache key.
    """
    with run_context().display.stage("backbone"):
        model = load_model(
            backbone_folder(recipe) or recipe.model, revision=recipe.revision, random_init=recipe.random_init
        )
        return put_model(model, name=recipe.model)


def write_digests(folder: Path) -> None:
    """Write the digests of the files that are loaded to digests.json."""
    loaded = [
        path
        for path in sorted(folder.iterdir())
        if path.name != "digests.json" and path.suffix in (".json", ".safetensors")
    ]
    digests = {path.name: sha256_of(path) for path in loaded}
    (folder / "digests.json").write_text(json.dumps(digests, indent=1))
