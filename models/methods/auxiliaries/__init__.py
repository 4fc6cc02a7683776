"""Auxiliary: what else is learnt from a round's episodes, besides which actions were better."""

from abc import abstractmethod

from models.methods.method import Method, OptionsT
from models.methods.streams import TrainingStream
from models.text.prompts import PromptFormat
from schemas.records import Trajectory


class Auxiliary(Method[OptionsT]):
    """Port of methods that add streams without actions to a round, with weights for cross-entropy or KL on tokens."""

    @abstractmethod
    def streams(self, trajectory: Trajectory, format: PromptFormat) -> list[TrainingStream]:
        """Return further streams to train on.

        Args:
            trajectory: Episode that did not fail, with the tokens that the policy saw and sampled.
            format: Format of the policy's prompts.
        """
