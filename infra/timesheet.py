"""What a cycle has cost so far: seconds and tokens by stage, over all processes that worked on it."""

import json
import time
from pathlib import Path

from infra.durable_files import write_durably


class Timesheet:
    """Counts up, in a file, so that what a killed process had counted is there for the next one."""

    def __init__(self) -> None:
        """An empty sheet, kept nowhere."""
        self.stage_seconds: dict[str, float] = {}
        self.stage_tokens: dict[str, int] = {}
        self._file: Path | None = None
        self._earlier_s = 0.0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Wall time of the cycle."""
        return self._earlier_s + time.monotonic() - self._started

    def keep_in(self, file: Path) -> None:
        """Begin the sheet of a cycle, or go on with it if it was begun before."""
        file.parent.mkdir(parents=True, exist_ok=True)
        earlier = json.loads(file.read_text()) if file.exists() else {}
        self.stage_seconds, self.stage_tokens = earlier.get("stage_seconds", {}), earlier.get("stage_tokens", {})
        self._earlier_s, self._started = earlier.get("seconds", 0.0), time.monotonic()
        self._file = file

    def worked(self, stage: str, seconds: float) -> None:
        """Add the seconds of a stage."""
        self.stage_seconds[stage] = self.stage_seconds.get(stage, 0.0) + seconds
        self._save()

    def used(self, stage: str, num_tokens: int) -> None:
        """Add tokens that a stage computed."""
        self.stage_tokens[stage] = self.stage_tokens.get(stage, 0) + num_tokens
        self._save()

    def _save(self) -> None:
        if self._file is not None:
            sheet = {"seconds": self.seconds, "stage_seconds": self.stage_seconds, "stage_tokens": self.stage_tokens}
            write_durably(self._file, json.dumps(sheet).encode())
