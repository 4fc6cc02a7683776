"""Where Prefect keeps the results of versioned tasks: among the objects, so that every machine finds them, sealed."""

from prefect.filesystems import WritableFileSystem

from infra.context import blobs
from infra.storage.checksummed import checksummed, verified_content

_FOLDER = "results"


class ResultBlobs(WritableFileSystem):
    """A file system for Prefect. What does not match its seal cannot be read, which to Prefect is a result not yet made."""

    # Prefect's base class is asynchronous on paper and calls these with `_sync=True`.
    def read_path(self, path: str, *, _sync: bool = True) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        """A result as it was written.

        Raises:
            IntegrityError: it is not.
        """
        return verified_content(blobs().read(f"{_FOLDER}/{path}"), f"result {path} in {blobs().root}")

    def write_path(self, path: str, content: bytes, *, _sync: bool = True) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Keep a result, or replace it."""
        blobs().write(f"{_FOLDER}/{path}", checksummed(content))

    def _resolve_path(self, path: str) -> None:
        """Keys are no paths on this machine, so that Prefect takes them as they are."""
