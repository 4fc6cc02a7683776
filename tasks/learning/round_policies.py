"""Policies of a training's rounds in the store: what nobody will ask for is removed as the training goes on."""

from infra.context import objects
from schemas.records import Reference
from tasks.running.artifacts import remove_optimizer_state


class RoundPolicies:
    """Policies that a training goes through.

    The weights of the last ones stay, and of those that were measured on valid tasks; the state of the optimiser stays
    with the last one and the best one, which a training may go on from. A run that needs another one makes it again. Policies
    that a training began from, first or after a consolidation, are not its own: their weights stay, also where a round left
    them as they were.
    """

    def __init__(self, num_recent: int = 1) -> None:
        """Begin without policies.

        Args:
            num_recent: Number of last policies that may still play.
        """
        self._num_recent = num_recent
        self._recent: list[Reference] = []
        self._with_state: list[Reference] = []
        self._measured: list[Reference] = []
        self._best: list[Reference] = []
        self._own = set[str]()
        self._origins: list[Reference] = []

    def add(self, policy: Reference, made_from: Reference) -> None:
        """Note the policy after a round, and remove what it replaces; do nothing if the round changed nothing."""
        if policy.sha256 == made_from.sha256:
            return
        if made_from.sha256 not in self._own:
            self._origins.append(made_from)
        self._own.add(policy.sha256)
        self._remove_states(policy)
        self._recent.append(policy)
        replaced, self._recent = self._recent[: -self._num_recent], self._recent[-self._num_recent :]
        for one in replaced:
            objects().remove_files(one, [*self._recent, *self._measured, *self._origins])

    def _remove_states(self, last: Reference) -> None:
        """Keep the states of the last and the best policy; the best may be none of this training's."""
        kept = [last, *self._best]
        for one in self._with_state:
            remove_optimizer_state(one, kept)
        digests = {one.sha256 for one in kept}
        self._with_state = [one for one in (*self._with_state, last) if one.sha256 in digests]

    def measured(self, policy: Reference, best: Reference) -> None:
        """Note a policy that was measured on valid tasks, and the best one so far: both stay."""
        self._measured.append(policy)
        self._best = [best]
