"""Self-distillation: the policy learns what it would have done after a demonstration."""

import math
from collections.abc import Sequence

from pydantic import Field

from models.methods.auxiliaries import Auxiliary
from models.methods.streams import TrainingStream
from models.text.prompts import PromptFormat
from schemas.recipes.section import Section
from schemas.records import Tokens, Trajectory


class SelfDistillationOptions(Section):
    """Options of self-distillation."""

    weight: float = Field(default=0.01, gt=0)
    """c: weight beside the loss of the actions."""
    sharpness: float = Field(default=5.0, gt=0)
    """beta: how sharply a token's weight follows the teacher's preference for it."""


class SelfDistillation(Auxiliary[SelfDistillationOptions]):
    """Cross-entropy of sampled tokens, by how much likelier they are after a demonstration.

    Teacher and student have the same weights; the teacher was shown a real win, of the same task or of the one with the
    most similar instruction. For a large model that reads demonstrations; a small one that never saw any learns noise.

    Source: OPSD; SDAR, with its gate g = sigmoid(beta (log p_teacher - log p_student)) and the gradient
        -c g grad log p_student. Several readers of SDAR's code reported that they could not reproduce its gains.
    Differs: gates are computed once a round; the student's log-probabilities are those of sampling. Episodes whose names were
        replaced for the policy are left out, since the demonstration has the true ones.
    """

    Options = SelfDistillationOptions
    needs_demonstrations = True

    def streams(
        self, trajectory: Trajectory, format: PromptFormat, demonstrated: Sequence[Sequence[float]] = ()
    ) -> list[TrainingStream]:
        """Return each stream that has a demonstration, with a weight on the tokens that the policy sampled."""
        del format
        return [
            self._weighted(stream, teacher)
            for stream, teacher in zip(trajectory.tokens, demonstrated, strict=True)
            if teacher
        ]

    def _weighted(self, stream: Tokens, teacher: Sequence[float]) -> TrainingStream:
        gates = iter(
            gate(of_teacher - of_student, self.options.sharpness)
            for of_teacher, of_student in zip(teacher, _sampled(stream), strict=True)
        )
        weights = [self.options.weight * next(gates) if action else 0.0 for action in stream.is_action]
        length = len(stream.ids)
        return TrainingStream(Tokens(stream.ids, [False] * length, [0.0] * length), [], ce_weights=weights)


def gate(preference: float, sharpness: float) -> float:
    """Return the weight of a token that the teacher prefers by this difference of log-probabilities."""
    return (1 + math.tanh(sharpness * preference / 2)) / 2


def _sampled(stream: Tokens) -> list[float]:
    return [logprob for logprob, action in zip(stream.logprobs, stream.is_action, strict=True) if action]
