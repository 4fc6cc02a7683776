"""Observation loss of ECHO: the policy learns to predict what its actions lead to."""

from collections.abc import Sequence
from itertools import accumulate

from pydantic import Field

from models.methods.auxiliaries import Auxiliary
from models.methods.streams import TrainingStream
from models.text.prompts import PromptFormat
from schemas.recipes.section import Section
from schemas.records import Tokens, Trajectory, Turn
from schemas.state_text import changes_between


class ObservationsOptions(Section):
    """Options of the observation loss."""

    weight: float = Field(default=0.1, gt=0)
    """alpha: weight of the mean cross-entropy of observed tokens, beside the loss of the actions."""


class Observations(Auxiliary[ObservationsOptions]):
    """Cross-entropy of what real steps changed, after the policy's own actions.

    Dreams are left out: the policy would learn the experience model's errors. So are episodes whose names were replaced
    for the policy, since what was observed has the true names.

    Source: ECHO; weight 0.1 as in its public code (prime-rl).
    Differs: a policy that sees one turn at a time is shown the change and the outcome after its action, as the experience
        model writes them; one that remembers the episode learns the whole states that it contains, as in ECHO.
    """

    Options = ObservationsOptions

    def streams(
        self, trajectory: Trajectory, format: PromptFormat, demonstrated: Sequence[Sequence[float]] = ()
    ) -> list[TrainingStream]:
        """Return the episode, or each turn with its step, with a weight on what was observed."""
        del demonstrated
        tokens = trajectory.tokens
        if trajectory.origin != "real" or not tokens:
            return []
        if len(tokens) == 1 < len(trajectory.turns):
            return [self._weighted(tokens[0].ids, _after_the_first_action(tokens[0].is_action))]
        return [
            self._with_step(stream, turn, format)
            for stream, turn in zip(tokens, trajectory.turns, strict=True)
            if _shows(stream, turn, format)
        ]

    def _with_step(self, stream: Tokens, turn: Turn, format: PromptFormat) -> TrainingStream:
        """Return the policy's stream of a turn, with its step as the target."""
        observed = format.prediction(turn.step, changes_between(turn.state, turn.step.state), with_reasoning=False)
        return self._weighted([*stream.ids, *observed], [False] * len(stream.ids) + [True] * len(observed))

    def _weighted(self, ids: list[int], is_observed: Sequence[bool]) -> TrainingStream:
        weights = [self.options.weight * observed for observed in is_observed]
        return TrainingStream(Tokens(ids, [False] * len(ids), [0.0] * len(ids)), [], ce_weights=weights)


def _after_the_first_action(is_action: Sequence[bool]) -> list[bool]:
    """Return whether each token was observed as a consequence of an action."""
    return [begun and not action for begun, action in zip(accumulate(is_action, max), is_action, strict=True)]


def _shows(stream: Tokens, turn: Turn, format: PromptFormat) -> bool:
    """Return whether the policy saw the state as it is, under its own names."""
    prompt = [id for id, action in zip(stream.ids, stream.is_action, strict=True) if not action]
    state = format.state(turn.state)
    return prompt[-len(state) :] == state
