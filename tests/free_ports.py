"""Ports that nobody listens on, for servers of a test."""

import socket
from contextlib import ExitStack


def free_port(host: str = "127.0.0.1") -> int:
    """One of them."""
    return free_ports(1, host)[0]


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """So many, no two alike."""
    with ExitStack() as probes:
        taken = [probes.enter_context(socket.socket()) for _ in range(count)]
        for probe in taken:
            probe.bind((host, 0))
        return [probe.getsockname()[1] for probe in taken]
