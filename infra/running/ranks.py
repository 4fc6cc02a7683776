"""Ranks: processes that do one training together, started and watched by torchrun; all end if one does, or we do."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from infra.settings import Settings
from schemas.errors import TrainingError

_LOG_TAIL = 2000


def run_ranks(settings: Settings, module: str, folder: Path, on_line: Callable[[str], None]) -> None:
    """Run a module on as many ranks as the settings say, until all are done.

    Args:
        settings: Say how many, and how many threads they have in all.
        module: Called with the folder, once per rank.
        folder: Of the job; what ranks complain of goes into its log.
        on_line: Called with what a rank prints.

    Raises:
        TrainingError: a rank failed, or died; the others were ended.
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
            f"a training on {settings.num_ranks} ranks failed; run again, and it goes on from its last checkpoint. "
            f"The end of {log}:\n{tail}"
        )
