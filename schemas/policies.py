"""The policies that a cycle makes, in the order in which people read them, and what tables and commands call them."""

from enum import StrEnum

REGISTERED_MODEL = "dreamgym-policy"
"""Name of all policies in MLflow's model registry; each is a version."""

POLICY_LABELS = {
    "start": "starting policy",
    "dream": "after dream-only RL",
    "champion": "champion until then",
    "sim_to_real": "after sim-to-real",
}


class PolicyName(StrEnum):
    """A policy of a run, as commands name it."""

    START = "start"
    DREAM = "dream"
    SIM_TO_REAL = "sim-to-real"

    @property
    def key(self) -> str:
        """The same in a run's lineage and results."""
        return self.value.replace("-", "_")


GATES = {PolicyName.DREAM: "gate", PolicyName.SIM_TO_REAL: "real_gate"}
"""Policies that may become champion, and where a run's record keeps the verdict on each."""
