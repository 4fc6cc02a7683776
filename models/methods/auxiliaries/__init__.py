"""Auxiliary: what else is learnt from a round's episodes, besides which actions were better."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from models.methods.method import Method, OptionsT
from models.methods.streams import TrainingStream
from models.text.prompts import PromptFormat
from schemas.records import Trajectory


class Auxiliary(Method[OptionsT]):
    """Port of methods that add streams without actions to a round, with weights for cross-entropy or KL on tokens."""

    needs_demonstrations: ClassVar[bool] = False
    """True if it asks what the policy would have done after it was shown a win."""

    @abstractmethod
    def streams(
        self, trajectory: Trajectory, format: PromptFormat, demonstrated: Sequence[Sequence[float]] = ()
    ) -> list[TrainingStream]:
        """Return further streams to train on.

        Args:
            trajectory: Episode that did not fail, with the tokens that the policy saw and sampled.
            format: Format of the policy's prompts.
            demonstrated: Log-probability of each sampled token of each stream, after a demonstration; empty for a stream
                without one, and if the method does not ask for them.
        """
