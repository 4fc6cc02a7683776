"""What this process stored or fetched last: the next task often needs just that, and need not fetch and decode it."""

from collections import OrderedDict
from threading import RLock
from typing import Generic, TypeVar

from schemas.records import Reference

Kept = TypeVar("Kept")


class LruCache(Generic[Kept]):
    """The latest few of one kind, by digest. Nobody changes them."""

    def __init__(self, num_kept: int) -> None:
        """Room for so many."""
        self._num_kept = num_kept
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._one_at_a_time = RLock()

    def remember(self, reference: Reference, value: Kept) -> Kept:
        """Keep a value as the latest; returns it."""
        with self._one_at_a_time:
            self._kept[reference.sha256] = value
            self._kept.move_to_end(reference.sha256)
            if len(self._kept) > self._num_kept:
                self._kept.popitem(last=False)
        return value

    def recall(self, reference: Reference) -> Kept | None:
        """A value that is still kept, as the latest from now on."""
        value = self._kept.get(reference.sha256)
        return None if value is None else self.remember(reference, value)

    def take(self, reference: Reference) -> Kept | None:
        """A value that is still kept, and is not from now on: whoever takes it may change it."""
        return self._kept.pop(reference.sha256, None)

    def forget(self) -> None:
        """Keep nothing."""
        self._kept.clear()
