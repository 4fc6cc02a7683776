"""Maintenance by hand or by deployment: compact tables, remove old versions and results, and unreferenced objects."""

from datetime import timedelta

from infra.context import blobs, replay_store
from tasks.running.maintain import Maintenance, maintain


def tidy_up(keep_days: int) -> Maintenance:
    """Maintain the stores of this home; return counts of what was removed."""
    return maintain(blobs(), replay_store(), timedelta(days=keep_days))


def in_words(gone: Maintenance, keep_days: int) -> str:
    """Return in one line what was removed."""
    versions = sum(gone.num_versions.values())
    return (
        f"removed {gone.num_objects} objects ({gone.num_bytes / 1e6:.1f} MB) that nothing names, {gone.num_results} results "
        f"older than {keep_days} days and {versions} versions of tables"
    )
