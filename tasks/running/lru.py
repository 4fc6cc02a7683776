"""Cache of what this process stored or fetched last, so that the next task need not fetch and decode it again."""

from collections import OrderedDict
from threading import RLock
from typing import Generic, TypeVar

from schemas.records import Reference

Kept = TypeVar("Kept")


class LruCache(Generic[Kept]):
    """Least-recently-used cache of one kind of value, by digest. Callers must not change the values."""

    def __init__(self, num_kept: int) -> None:
        """Create a cache of at most num_kept values."""
        self._num_kept = num_kept
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._one_at_a_time = RLock()

    def remember(self, reference: Reference, value: Kept) -> Kept:
        """Store a value as the latest, and return it."""
        with self._one_at_a_time:
            self._kept[reference.sha256] = value
            self._kept.move_to_end(reference.sha256)
            if len(self._kept) > self._num_kept:
                self._kept.popitem(last=False)
        return value

    def recall(self, reference: Reference) -> Kept | None:
        """Return a cached value and make it the latest; None if it is not cached."""
        value = self._kept.get(reference.sha256)
        return None if value is None else self.remember(reference, value)

    def take(self, reference: Reference) -> Kept | None:
        """Remove a cached value and return it, so that the caller may change it; None if it is not cached."""
        return self._kept.pop(reference.sha256, None)

    def values(self) -> list[Kept]:
        """Return the cached values."""
        with self._one_at_a_time:
            return [*self._kept.values()]

    def forget(self) -> None:
        """Clear the cache."""
        self._kept.clear()
