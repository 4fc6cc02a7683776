"""The policies of a run in display order, and their names in tables and commands."""

from enum import StrEnum

REGISTERED_MODEL = "dreamgym-policy"
"""Name of the registered model in MLflow; each policy is a version of it."""

POLICY_LABELS = {
    "start": "starting policy",
    "dream": "after dream training",
    "champion": "champion until then",
    "sim_to_real": "after sim-to-real",
}


class PolicyName(StrEnum):
    """A policy of a run, as named on the command line."""

    START = "start"
    DREAM = "dream"
    SIM_TO_REAL = "sim-to-real"

    @property
    def key(self) -> str:
        """Key of the policy in a run's lineage and results."""
        return self.value.replace("-", "_")


GATES = {PolicyName.DREAM: "gate", PolicyName.SIM_TO_REAL: "real_gate"}
"""Policies that may become champion, each with the field of the run's record that holds its verdict."""
