"""Time of a run beside one busy loop per core, over its time alone.

    python -m tests.benchmarks.busy                                    the default recipe, twice
    python -m tests.benchmarks.busy textworld-tiny --set KEY=VALUE     what `dreamgym run` takes

It may take two and a half times as long.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from schemas.errors import GateRefused
from tests.command_line import COMMAND

_MAX_SLOWDOWN = 2.5
_LOOP = [sys.executable, "-c", "while True: pass"]


def main(*options: str) -> int:
    """Print the times and their ratio; return 1 if it is too large."""
    alone = _seconds(options)
    with _busy():
        beside = _seconds(options)
    print(f"alone {alone:.0f} s, beside {os.cpu_count()} busy loops {beside:.0f} s: {beside / alone:.2f} times as long")
    return int(beside > _MAX_SLOWDOWN * alone)


def _seconds(options: Sequence[str]) -> float:
    """Return the duration of a run in a fresh home, Python's start included."""
    command = [COMMAND, "run", *(options or ["textworld-tiny"])]
    with tempfile.TemporaryDirectory() as home:
        began = time.monotonic()
        done = subprocess.run(
            command, env={**os.environ, "DREAMGYM_HOME": home}, stdout=subprocess.DEVNULL, check=False
        )
        assert done.returncode in (0, GateRefused.exit_code), f"{command} ended with {done.returncode}"
        return time.monotonic() - began


@contextmanager
def _busy() -> Iterator[None]:
    """Keep every core busy with a loop of its own."""
    loops = [subprocess.Popen(_LOOP) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
