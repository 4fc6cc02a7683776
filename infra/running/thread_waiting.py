"""Load of the machine, and how the networks' threads should wait for each other under it.

Threads that wait by spinning are fast on an idle machine, and starve each other on a busy one. The OpenMP runtime reads
its wait policy when it is loaded, so the policy is chosen once, from the load at that moment.
"""

import time
from pathlib import Path

_LOOKED_FOR_S = 0.2
_BUSY_SHARE = 0.25
"""Share of all cores busy with other processes above which threads should sleep."""


def thread_waiting() -> dict[str, str]:
    """Return variables that set OpenMP's wait policy: sleep on a busy machine, else spin for a short while."""
    if busy_share() > _BUSY_SHARE:
        return {"OMP_WAIT_POLICY": "passive"}
    return {"GOMP_SPINCOUNT": "10000"}


def busy_share(look_for_s: float = _LOOKED_FOR_S) -> float:
    """Return the share of all cores that is busy while this process sleeps; 0 if the system does not report it."""
    before = _ticks()
    time.sleep(look_for_s)
    after = _ticks()
    if before is None or after is None or after[1] == before[1]:
        return 0.0
    return (after[0] - before[0]) / (after[1] - before[1])


def _ticks() -> tuple[int, int] | None:
    """Return the busy and the total ticks of all cores since boot; None without /proc/stat."""
    file = Path("/proc/stat")
    if not file.exists():
        return None
    user, nice, system, idle, waiting, *rest = map(int, file.read_text().split("\n", 1)[0].split()[1:9])
    working = user + nice + system + sum(rest)
    return working, working + idle + waiting
