"""Best policy of a training by its success on valid tasks, and the reasons to end the training early."""

from collections.abc import Mapping
from typing import Any

from schemas.recipes.learning import DreamRecipe
from schemas.records import Reference


class BestPolicy:
    """The policy with the highest success on valid tasks so far; of equally good ones the latest."""

    def __init__(self, policy: Reference, success: float) -> None:
        """Begin with the policy before training.

        Args:
            policy: Policy before training.
            success: Its success on valid tasks.
        """
        self.policy, self.success = policy, success
        self._num_without_rise = 0

    def compare(self, policy: Reference, success: float) -> None:
        """Take a policy that is at least as good as the best one; count the comparisons since success last rose."""
        self._num_without_rise = 0 if success > self.success else self._num_without_rise + 1
        if success >= self.success:
            self.policy, self.success = policy, success

    def reason_to_end(self, asked: DreamRecipe, calibration: Mapping[str, Any]) -> str:
        """Return why further rounds are not worth their time; empty if they are.

        Args:
            asked: Target and patience.
            calibration: The last comparison of dream and real success on valid tasks.
        """
        if asked.target < 1 and calibration["interval_low"] >= asked.target:
            return f"real success is at least {calibration['interval_low']:.1%}, and the target is {asked.target:.1%}"
        if asked.patience and self._num_without_rise >= asked.patience:
            return f"no rise of success on valid tasks in {self._num_without_rise} calibrations"
        return ""
