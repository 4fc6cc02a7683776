"""Export a policy as a Hugging Face folder with a model card: what transformers and inference engines load."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from flows.find_policy import FoundPolicy
from flows.model_card import model_card
from schemas.errors import InputError, IntegrityError, StorageError
from tasks.keep import fetch_merged_model


def require_empty(folder: Path) -> None:
    """Refuse to write over anything.

    Raises:
        InputError: something is there already.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: name a folder that is new or empty")
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty, and nothing in it was touched: name a folder that is new or empty")


def export_policy(found: FoundPolicy, folder: Path) -> None:
    """Write weights with adapters merged, configuration, tokenizer and README.md; all of it, or nothing.

    Args:
        found: Every file of it is verified.
        folder: New or empty.

    Raises:
        InputError: the folder is not empty.
        StorageError: a file of the policy is not in the object store any more.
        IntegrityError: a file is not what its digest says.
    """
    require_empty(folder)
    with _whole_or_nothing(folder) as partial:
        try:
            fetch_merged_model(found.reference, partial)
        except (StorageError, IntegrityError) as error:
            raise type(error)(f"{found.title} cannot be exported: {error}. {_remedy(found)}") from error
        (partial / "README.md").write_text(model_card(found))


@contextmanager
def _whole_or_nothing(folder: Path) -> Iterator[Path]:
    """A folder beside, which takes the place of this one when everything is in it."""
    target = folder.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
    partial.mkdir()
    try:
        yield partial
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _remedy(found: FoundPolicy) -> str:
    """How to come by what is missing."""
    restore = "Restore it from a backup of the object store"
    if found.summary is None:
        return f"{restore}, or export another policy: `dreamgym history` lists them"
    return f"{restore}, or run the recipe {found.summary['recipe']['name']} again, which makes anew what is missing"
