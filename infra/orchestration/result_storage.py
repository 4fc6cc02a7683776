"""Storage of Prefect task results in the object store, checksummed and available to every machine."""

from prefect.filesystems import WritableFileSystem

from infra.context import background_blobs
from infra.storage.checksummed import checksummed, verified_content

_FOLDER = "results"


class ResultBlobs(WritableFileSystem):
    """File system for Prefect. A result that fails its checksum cannot be read, so Prefect computes it again."""

    # Prefect's base class is asynchronous on paper and calls these with `_sync=True`.
    def read_path(self, path: str, *, _sync: bool = True) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return a result as it was written.

        Raises:
            IntegrityError: the result does not match its checksum.
        """
        store = background_blobs()
        return verified_content(store.read(f"{_FOLDER}/{path}"), f"result {path} in {store.root}")

    def write_path(self, path: str, content: bytes, *, _sync: bool = True) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write or replace a result, after the objects that it names."""
        background_blobs().write(f"{_FOLDER}/{path}", checksummed(content))

    def _resolve_path(self, path: str) -> None:
        """Return None: keys are not local paths, so Prefect uses them as they are."""
