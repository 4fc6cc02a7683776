"""Report the progress of a training to the display and to MLflow."""

import time

from infra.context import run_context
from infra.progress.progress import Report
from models.training.sft import SftProgress

_LOG_EVERY = 20


class SftReport:
    """Callback after each update of a supervised fine-tuning."""

    def __init__(self, stage: str, report: Report) -> None:
        """Create a report under a stage's name."""
        self._stage, self._report = stage, report
        self._started = time.monotonic()
        self._num_tokens = self._num_counted = 0

    def __call__(self, progress: SftProgress) -> None:
        """Show this update; log every 20th and the last."""
        self._num_tokens += progress.num_tokens
        speed = self._num_tokens / (time.monotonic() - self._started)
        facts = f"loss {progress.loss:.3f}, {speed / 1000:.1f}k tokens/s"
        self._report(progress.update, progress.num_updates, "updates", facts)
        if progress.update % _LOG_EVERY == 0 or progress.update == progress.num_updates:
            run_context().display.used(self._stage, self._num_tokens - self._num_counted)
            self._num_counted = self._num_tokens
            metrics = {"loss": progress.loss, "tokens_per_second": speed}
            run_context().tracker.stage(self._stage).log_metrics(metrics, progress.update)
