"""Export of a policy as a Hugging Face folder with a model card, which transformers and inference engines load."""

from pathlib import Path

from flows.reports.model_card import model_card
from flows.runs.find_policy import FoundPolicy
from infra.files.whole_folder import whole_folder
from schemas.errors import IntegrityError, StorageError
from tasks.running.artifacts import fetch_merged_model, fetch_model


def export_policy(found: FoundPolicy, folder: Path, *, merge: bool = True) -> None:
    """Write weights, configuration, tokenizer with chat template and README.md; all of them or nothing.

    Args:
        found: Policy to export; every file of it is verified.
        folder: Target folder, new or empty.
        merge: Merge adapters into the weights; else they are files of their own, in peft's format, beside the base.

    Raises:
        InputError: the folder is not empty.
        StorageError: a file of the policy is missing from the object store.
        IntegrityError: a file does not match its digest.
    """
    with whole_folder(folder) as partial:
        try:
            (fetch_merged_model if merge else fetch_model)(found.reference, partial)
        except (StorageError, IntegrityError) as error:
            raise type(error)(f"{found.title} cannot be exported: {error}. {_remedy(found)}") from error
        (partial / "README.md").write_text(model_card(found))


def _remedy(found: FoundPolicy) -> str:
    """Return how to restore the missing files."""
    restore = "Restore it from a backup of the object store"
    if found.summary is None:
        return f"{restore}, or export another policy: `dreamgym history` lists them"
    return f"{restore}, or run the recipe {found.summary['recipe']['name']} again: it recomputes what is missing"
