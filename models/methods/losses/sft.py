"""Cloning of a round's better episodes: rejection fine-tuning, or expert iteration with fresh groups."""

from dataclasses import replace

from torch import Tensor

from models.methods.losses import Batch, Loss
from models.methods.method import NoOptions
from models.methods.streams import TrainingGroup


class Sft(Loss[NoOptions]):
    """Cross-entropy on the actions with a positive advantage; all others are left out.

    Source: filtered behaviour cloning, as in RAFT (arXiv 2304.06767).
    """

    @property
    def corrects_staleness(self) -> bool:
        """True: an action is cloned whichever policy took it."""
        return True

    def marked(self, group: TrainingGroup) -> TrainingGroup:
        """Return the streams that have a better action, with a weight on its tokens."""
        better = [stream for stream in group.streams if max(stream.advantages) > 0]
        weighted = [
            replace(stream, ce_weights=stream.at_tokens([float(one > 0) for one in stream.advantages]))
            for stream in better
        ]
        return replace(group, streams=weighted)

    def rl(self, batch: Batch) -> tuple[Tensor | None, dict[str, float]]:
        """Return no further loss."""
        return None, {}
