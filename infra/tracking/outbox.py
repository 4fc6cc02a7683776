"""Outbox: entries are delivered in order in the background, and retried until they arrive or are refused for good."""

import threading
import time
from collections import deque
from collections.abc import Callable

from schemas.errors import StorageError

Delivery = Callable[[], object]

_RETRY_AFTER_S = 2.0
_LAST_DELIVERY_S = 5.0


class Outbox:
    """Background thread that delivers entries. The sender waits for a slow receiver only in `flush`."""

    def __init__(self, receiver: str, may_pass: Callable[[Exception], bool]) -> None:
        """Start the thread with an empty outbox.

        Args:
            receiver: Name of the receiver, for messages.
            may_pass: Returns True if a failed delivery may succeed when retried.
        """
        self._receiver, self._may_pass = receiver, may_pass
        self._waiting: deque[Delivery] = deque()
        self._changed = threading.Condition()
        self.refusals: list[str] = []
        """Errors of entries that the receiver refused for good; later entries are still delivered."""
        self._last_error: Exception | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._deliver_on, name=f"outbox for {receiver}", daemon=True)
        self._thread.start()

    def put(self, delivery: Delivery) -> None:
        """Queue a delivery; it must be safe to repeat."""
        with self._changed:
            self._waiting.append(delivery)
            self._changed.notify_all()

    def close(self) -> None:
        """End the thread after the delivery under way; what still waits is not delivered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(_LAST_DELIVERY_S)

    def flush(self, timeout_s: float) -> None:
        """Wait until everything is delivered or refused.

        Raises:
            StorageError: the time is up.
        """
        with self._changed:
            arrived = self._changed.wait_for(lambda: not self._waiting, timeout_s)
        if not arrived:
            raise StorageError(
                f"{self._receiver} has not taken {len(self._waiting)} entries within {timeout_s:.0f} s: {self._last_error}. "
                "They are in the journal; run the same command again when it answers"
            ) from self._last_error

    def _deliver_on(self) -> None:
        while first := self._next():
            try:
                first()
            except Exception as error:  # any error: what is tracked must not end what is done
                self._last_error = error
                if self._may_pass(error):
                    time.sleep(_RETRY_AFTER_S)
                    continue
                self.refusals.append(str(error))
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()

    def _next(self) -> Delivery | None:
        """Wait for the next delivery and return it; None once the outbox is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return None if self._closed else self._waiting[0]
