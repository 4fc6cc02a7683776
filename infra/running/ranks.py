"""Ranks: processes of one distributed training, started and watched by torchrun; all end if one fails or we end."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from infra.settings import Settings
from schemas.errors import TrainingError

_LOG_TAIL = 2000


def run_ranks(settings: Settings, module: str, folder: Path, on_line: Callable[[str], None]) -> None:
    """Run a module on the configured number of ranks and wait until all have finished.

    Args:
        settings: Number of ranks, and number of threads that they share.
        module: Module to run on each rank, with the folder as its argument.
        folder: Folder of the job; standard error of the ranks is written to its file `log`.
        on_line: Called with each line that a rank prints.

    Raises:
        TrainingError: a rank failed or died; the others were ended.
    """
    command = [
        *(sys.executable, "-m", "infra.running.guard"),
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(settings.num_ranks)),
        *("-m", module, str(folder)),
    ]
    threads = max(1, settings.num_threads // settings.num_ranks)
    log = folder / "log"
    with (
        log.open("wb") as complaints,
        subprocess.Popen(  # noqa: S603
            command,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            start_new_session=True,
            text=True,
        ) as process,
    ):
        for line in process.stdout or ():
            on_line(line)
    if process.returncode != 0:
        tail = log.read_text(errors="replace")[-_LOG_TAIL:]
        raise TrainingError(
            f"training on {settings.num_ranks} ranks failed; run again to resume from the last checkpoint. "
            f"The end of {log}:\n{tail}"
        )
