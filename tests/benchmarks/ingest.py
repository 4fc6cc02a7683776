"""Rows per second and memory of `dreamgym ingest` on logs of chats and of traced calls.

    python -m tests.benchmarks.ingest         minutes

It ingests a tenth of a log, the whole of it, and the whole of it in a process that is killed halfway and resumed in
another. The whole may take little more memory than the tenth, and resuming costs little more time.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

from tests.command_line import COMMAND, environment

_NUM_ROWS, _TURNS = 1_000_000, 20
_FEW = _NUM_ROWS // 10
_MIN_ROWS_PER_SECOND, _MAX_GROWTH = 5_000, 1.2
_SEEN = "You are in room {turn} of house {number}. You see a door to the {side}, a lamp, and {number} cups on a table."
_SIDES = ("north", "south", "east", "west")


def main() -> int:
    """Print the table; return 1 if ingestion is slow, its memory grows with the log, or a resumed result differs."""
    table = Table("log", "transitions", "seconds", "rows/s", "most memory, MB")
    held = [_held_what_is_promised(kind, records, table) for kind, records in (("chats", _chats), ("calls", _calls))]
    Console().print(table)
    return int(not all(held))


def _held_what_is_promised(kind: str, records: Callable[[int], Iterator[object]], table: Table) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        few, many = (_log(home / f"{rows}.jsonl", records(rows // _TURNS)) for rows in (_FEW, _NUM_ROWS))
        small, large = _ingested(home, few, "few"), _ingested(home, many, "many")
        cut_off = _ingested(home, many, "again", killed_after_s=large[0] / 2)
        alike = _parts(home / "many") == _parts(home / "again")
    for name, num_rows, (seconds, peak_mb) in (
        (f"{kind}, a tenth", _FEW, small),
        (f"{kind}, all", _NUM_ROWS, large),
        (f"{kind}, all, killed halfway and gone on with", _NUM_ROWS, cut_off),
    ):
        table.add_row(name, f"{num_rows:,}", f"{seconds:.0f}", f"{num_rows / seconds:,.0f}", f"{peak_mb:.0f}")
    grown, rate = large[1] / small[1], _NUM_ROWS / large[0]
    Console().print(f"{kind}: memory of all over a tenth: {grown:.2f}; what was cut off ended alike: {alike}")
    return grown <= _MAX_GROWTH and rate >= _MIN_ROWS_PER_SECOND and alike


def _log(path: Path, records: Iterator[object]) -> Path:
    with path.open("w") as file:
        file.writelines(json.dumps(one) + "\n" for one in records)
    return path


def _chats(num_episodes: int) -> Iterator[object]:
    for number in range(num_episodes):
        yield {"id": f"chat/{number}", "messages": _said(number), "success": number % 3 == 0}


def _calls(num_episodes: int) -> Iterator[object]:
    """Yield exports of a model's calls: the first of every episode, and then the last of every episode."""
    for size in (1, 2 * _TURNS):
        for number in range(num_episodes):
            yield _export(number, _said(number)[:size])


def _export(number: int, said: Sequence[Mapping[str, str]]) -> object:
    told = [{"role": one["role"], "parts": [{"type": "text", "content": one["content"]}]} for one in said]
    attributes = [
        {"key": "gen_ai.input.messages", "value": {"stringValue": json.dumps(told)}},
        {"key": "success", "value": {"boolValue": number % 3 == 0}},
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": f"{number:032x}", "attributes": attributes}]}]}]}


def _said(number: int) -> list[dict[str, str]]:
    seen = [_SEEN.format(turn=turn, number=number, side=_SIDES[turn % 4]) for turn in range(_TURNS + 1)]
    messages = [{"role": "user", "content": seen[0]}]
    for turn, state in enumerate(seen[1:]):
        messages += [
            {"role": "assistant", "content": f"go {_SIDES[turn % 4]}"},
            {"role": "user", "content": state},
        ]
    return messages


def _ingested(home: Path, log: Path, name: str, killed_after_s: float | None = None) -> tuple[float, float]:
    """Return the seconds spent and the peak memory in MB.

    If the process is killed and resumed, the seconds add up, and the memory is the larger of the two.
    """
    command = [COMMAND, "ingest", str(log), "--to", str(home / name), "--json"]
    spent = [_run(command, home, killed_after_s)] if killed_after_s else []
    spent.append(_run(command, home))
    return sum(seconds for seconds, _ in spent), max(peak_mb for _, peak_mb in spent)


def _run(command: Sequence[str | Path], home: Path, killed_after_s: float | None = None) -> tuple[float, float]:
    started, peak = time.monotonic(), 0
    process = subprocess.Popen(command, env=environment(home), stdout=subprocess.DEVNULL, start_new_session=True)
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        peak = max(peak, _held(watched))
        if killed_after_s and time.monotonic() - started > killed_after_s:
            process.send_signal(signal.SIGKILL)
        time.sleep(0.1)
    if process.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(f"dreamgym ingest ended with {process.returncode}")
    return time.monotonic() - started, peak / 2**20


def _held(process: psutil.Process) -> int:
    """Return the resident bytes of a process, or 0 if it has just ended."""
    try:
        return process.memory_info().rss
    except psutil.Error:
        return 0


def _parts(folder: Path) -> dict[str, bytes]:
    return {part.name: part.read_bytes() for part in folder.glob("part-*.parquet")}


if __name__ == "__main__":
    sys.exit(main())
