"""Storage of Prefect task results in the object store, checksummed and available to every machine."""

from prefect.filesystems import WritableFileSystem

from infra.context import blobs
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
        return verified_content(blobs().read(f"{_FOLDER}/{path}"), f"result {path} in {blobs().root}")

    def write_path(self, path: str, content: bytes, *, _sync: bool = True) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Write or replace a result."""
        blobs().write(f"{_FOLDER}/{path}", checksummed(content))

    def _resolve_path(self, path: str) -> None:
        """Return None: keys are not local paths, so Prefect uses them as they are."""
