"""How busy the machine is with others' work, and how the networks' threads should wait then.

Threads that wait for each other by spinning are fast on an idle machine, and starve each other on a busy one. The OpenMP
runtime reads how to wait when it is loaded, so it is chosen once, by what else is running at that moment.
"""

import time
from pathlib import Path

_LOOKED_FOR_S = 0.2
_BUSY_SHARE = 0.25
"""Of all cores, at work for others."""


def thread_waiting() -> dict[str, str]:
    """Variables that tell OpenMP how to wait: asleep where others are at work, else spinning for a short while."""
    if busy_share() > _BUSY_SHARE:
        return {"OMP_WAIT_POLICY": "passive"}
    return {"GOMP_SPINCOUNT": "10000"}


def busy_share(look_for_s: float = _LOOKED_FOR_S) -> float:
    """Share of all cores that are at work while this process sleeps; 0 where the system does not say."""
    before = _ticks()
    time.sleep(look_for_s)
    after = _ticks()
    if before is None or after is None or after[1] == before[1]:
        return 0.0
    return (after[0] - before[0]) / (after[1] - before[1])


def _ticks() -> tuple[int, int] | None:
    """Ticks of all cores at work, and in all, since the machine was started."""
    file = Path("/proc/stat")
    if not file.exists():
        return None
    user, nice, system, idle, waiting, *rest = map(int, file.read_text().split("\n", 1)[0].split()[1:9])
    working = user + nice + system + sum(rest)
    return working, working + idle + waiting
