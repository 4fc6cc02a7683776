"""Files of a log: one, or those of a folder."""

from pathlib import Path

from infra.files.digests import sha256_of
from schemas.errors import DataError


def files_in(source: Path) -> dict[str, Path]:
    """Return the files in a folder and its subfolders by relative path, in order; or a single file by its name.

    Hidden files and folders are left out.

    Raises:
        DataError: there are no files.
    """
    if source.is_file():
        return {source.name: source}
    found = {str(path.relative_to(source)): path for path in sorted(source.rglob("*")) if path.is_file()}
    shown = {name: path for name, path in found.items() if not any(part.startswith(".") for part in Path(name).parts)}
    if not shown:
        raise DataError(f"{source}: no such file, and no folder with files: give logs as .jsonl, .json or .parquet")
    return shown


def log_files(path: str) -> dict[str, str]:
    """Return the SHA-256 of the files to import, by name; none if the logs are collected.

    Raises:
        DataError: there is no such file.
    """
    return {name: sha256_of(file) for name, file in files_in(Path(path)).items()} if path else {}
