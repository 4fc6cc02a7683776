"""Base of the losses that weigh sampled actions by advantages: importance correction, and a KL to the starting policy."""

from typing import TypeVar

from pydantic import Field

from models.methods.importance import ImportanceOptions
from models.methods.losses import Loss


class SurrogateOptions(ImportanceOptions):
    """Options of a surrogate loss."""

    kl_coefficient: float = Field(default=0.0, ge=0)
    """Weight of the KL to the starting policy (k3 estimate) at each action token."""


SurrogateT = TypeVar("SurrogateT", bound=SurrogateOptions)


class SurrogateLoss(Loss[SurrogateT]):
    """Loss with an importance correction and a KL term, both by its options."""

    @property
    def needs_reference(self) -> bool:
        """True with a KL term."""
        return self.options.kl_coefficient > 0

    @property
    def corrects_staleness(self) -> bool:
        """True with an importance correction."""
        return self.options.is_corrected
