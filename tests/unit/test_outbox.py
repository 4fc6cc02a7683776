"""Outbox: it delivers in order, again and again, and ends when it is closed."""

import threading
import time

from infra.tracking.outbox import Outbox


def threads_of(receiver: str) -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == f"outbox for {receiver}"]


def test_a_flushed_outbox_has_delivered_in_order_and_ends_when_it_is_closed():
    outbox, arrived = Outbox("a slow one", lambda _: False), []
    for number in range(5):
        outbox.put(lambda number=number: time.sleep(0.02) or arrived.append(number))
    outbox.flush(timeout_s=10)
    assert arrived == list(range(5))
    outbox.close()
    assert threads_of("a slow one") == []


def test_an_outbox_closed_earlier_ends_after_the_delivery_under_way():
    outbox, arrived, begun = Outbox("a slow one", lambda _: False), [], threading.Event()
    outbox.put(lambda: begun.set() or time.sleep(0.2) or arrived.append(0))
    outbox.put(lambda: arrived.append(1))
    begun.wait(timeout=10)
    outbox.close()
    assert threads_of("a slow one") == []
    assert arrived == [0]


def test_what_is_refused_for_good_is_noted_and_the_rest_is_delivered():
    outbox, arrived = Outbox("a picky one", lambda error: not isinstance(error, ValueError)), []

    def refuse() -> None:
        raise ValueError("not this one")

    outbox.put(refuse)
    outbox.put(lambda: arrived.append(1))
    outbox.flush(timeout_s=10)
    assert (outbox.refusals, arrived) == (["not this one"], [1])
    outbox.close()
