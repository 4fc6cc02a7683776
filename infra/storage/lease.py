"""Lease on a name: only one process on any machine works on a run at a time, and a dead process loses its lease.

Holder n is the process that created `leases/<name>/<n>.json`; the store lets only one succeed. A live holder writes a
heartbeat next to it. A process that finds the holder dead creates n + 1; a holder that was only slow notices and stops.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from infra.running.interrupts import request_stop
from infra.storage.blobs import Blobs
from schemas.errors import StorageError

BEAT_EVERY_S = 10.0
_DEAD_AFTER_S = 60.0
"""Seconds without a heartbeat after which a holder on another machine counts as dead, by the waiter's clock."""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """Unique identity of a process: process ids alone are reused, also after a reboot."""

    host: str
    boot: str
    pid: int
    started: str
    id: str
    pid_namespace: str = ""
    """Namespace that the process id belongs to: containers on one machine may have equal ids for different processes."""

    @classmethod
    def me(cls) -> "LeaseHolder":
        """Return the identity of this process."""
        own = os.getpid()
        return cls(socket.gethostname(), _boot(), own, _started(own), uuid4().hex, _pid_namespace())

    @property
    def is_here(self) -> bool:
        """True if the process was started on this machine since its last boot, and its id means the same here."""
        own = (socket.gethostname(), _boot(), _pid_namespace())
        return (self.host, self.boot, self.pid_namespace) == own

    @property
    def lives_here(self) -> bool:
        """True if the process is running on this machine now."""
        return self.is_here and _started(self.pid) == self.started

    def __str__(self) -> str:
        """Return a readable name."""
        return f"process {self.pid} on {self.host}"


class Lease:
    """Context manager that waits until the name is free, holds it, and frees it at the end."""

    def __init__(self, blobs: Blobs, name: str, say: Callable[[str], None]) -> None:
        """Create a lease that is not held yet."""
        self._blobs, self._name, self._say = blobs, name, say
        self._me, self._number = LeaseHolder.me(), 0
        self._done = threading.Event()
        self._beating = threading.Thread(target=self._beat_on, name=f"lease {name}", daemon=True)

    def __enter__(self) -> "Lease":
        """Wait until the lease is free, and take it."""
        while not self._taken():
            self._wait_for_present_holder()
        self._beat()
        self._beating.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Free the lease."""
        self._done.set()
        self._beating.join()
        self._write_beat({"released": True})

    def _taken(self) -> bool:
        """Try to become the next holder; return False if the present one may be alive, or another was faster."""
        number = last_number(self._blobs, self._name)
        if number and not is_free(self._blobs, self._name, number):
            return False
        self._number = number + 1
        return self._blobs.create(_key(self._name, self._number), json.dumps(asdict(self._me)).encode())

    def _wait_for_present_holder(self) -> None:
        """Wait until the present holder frees the lease or is replaced; release it after too long a silence."""
        number = last_number(self._blobs, self._name)
        self._say(f"{self._name} is worked on by {holder(self._blobs, self._name, number)}: waiting for it")
        seen, since = b"", time.monotonic()
        while number == last_number(self._blobs, self._name) and not is_free(self._blobs, self._name, number):
            beat = _beat(self._blobs, self._name, number)
            if beat != seen:
                seen, since = beat, time.monotonic()
            elif time.monotonic() - since > _DEAD_AFTER_S:
                self._blobs.write(_beat_key(self._name, number), b'{"released": true, "by": "silence"}')
            time.sleep(1)

    def _beat_on(self) -> None:
        while not self._done.wait(BEAT_EVERY_S):
            with suppress(StorageError):  # the store may be away for a while: the next heartbeat may get through
                self._beat()

    def _beat(self) -> None:
        if self._number != last_number(self._blobs, self._name):
            request_stop(f"{self._name} was taken over by another process, which held this one for dead")
        else:
            self._write_beat({"time": time.time()})

    def _write_beat(self, beat: dict[str, Any]) -> None:
        self._blobs.write(_beat_key(self._name, self._number), json.dumps(beat).encode())


def last_number(blobs: Blobs, name: str) -> int:
    """Return the number of a lease's last holder; 0 if it was never held."""
    return sum(key.endswith(".json") for key in blobs.keys(f"leases/{name}/"))


def holder(blobs: Blobs, name: str, number: int) -> LeaseHolder:
    """Return the holder with a number."""
    return LeaseHolder(**json.loads(blobs.read(_key(name, number))))


def is_free(blobs: Blobs, name: str, number: int) -> bool:
    """Return True if a holder freed its lease or is certainly dead: a process of this machine that no longer exists."""
    beat = _beat(blobs, name, number)
    if beat and json.loads(beat).get("released"):
        return True
    held_by = holder(blobs, name, number)
    return held_by.is_here and not held_by.lives_here


def _beat(blobs: Blobs, name: str, number: int) -> bytes:
    key = _beat_key(name, number)
    return blobs.read(key) if blobs.holds(key) else b""


def _key(name: str, number: int) -> str:
    return f"leases/{name}/{number:06d}.json"


def _beat_key(name: str, number: int) -> str:
    return f"leases/{name}/{number:06d}.beat"


def _boot() -> str:
    """Return the id of the machine's current boot; empty if the system does not report it."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def _pid_namespace() -> str:
    """Return the id of this process's namespace of process ids; empty if the system does not report it."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return the start time of a process in ticks since boot; empty if it does not exist or is a zombie."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if after_name[0] == "Z" else after_name[19]
