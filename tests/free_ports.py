"""Free ports for the servers of a test."""

import socket
from itertools import islice
from random import SystemRandom

_GIVEN_TO_NO_CLIENT = range(20_000, 32_768)
"""Ports below those of outgoing connections, which could take a port before its server does.

They are above the ports of Ray's workers.
"""


def free_port(host: str = "127.0.0.1") -> int:
    """Return one free port."""
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = "127.0.0.1", *, in_a_row: int = 1) -> list[int]:
    """Return `count` distinct ports, each the first of `in_a_row` consecutive free ones."""
    firsts = _GIVEN_TO_NO_CLIENT[::in_a_row]
    drawn = SystemRandom().sample(firsts, len(firsts))
    free = (first for first in drawn if all(_is_free(host, first + more) for more in range(in_a_row)))
    return list(islice(free, count))


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that have ended do not block the port
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
