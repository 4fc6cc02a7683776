"""Policy that is shown a win of the task, or of a similar one, before it acts: the teacher of self-distillation."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.methods.streams import TrainingGroup, TrainingStream
from models.network.language_model import LanguageModel
from models.rollout.wins import most_similar
from models.text.prompts import PromptFormat
from models.training.trained_logprobs import logprobs_by_group
from schemas.records import Tokens, Trajectory


@dataclass(frozen=True, slots=True)
class DemonstratedPolicy:
    """Policy that is shown demonstrations: the teacher of self-distillation."""

    policy: LanguageModel
    wins: Sequence[Trajectory]
    """Demonstrations to choose from."""
    temperature: float
    """Temperature of sampling."""
    tokens_per_batch: int
    """Maximum number of tokens computed at a time."""

    def logprobs(self, trajectories: Sequence[Trajectory]) -> list[list[list[float]]]:
        """Return the log-probability of each sampled token after a demonstration, by trajectory and stream.

        The list of a stream is empty where the policy saw other names than the task's, and in failed episodes.
        """
        found: list[list[list[float]]] = [[[] for _ in one.tokens] for one in trajectories]
        places, groups = list[tuple[int, int]](), list[TrainingGroup]()
        for number, trajectory in enumerate(trajectories):
            for place, longer in enumerate(self._shown(trajectory)):
                if longer:
                    groups.append(TrainingGroup([TrainingStream(longer, [])], group_id=str(len(places))))
                    places.append((number, place))
        computed = logprobs_by_group(self.policy.network, groups, self.temperature, self.tokens_per_batch)
        for group, logprobs in computed:
            number, place = places[int(group.group_id)]
            found[number][place] = logprobs
        return found

    def _shown(self, trajectory: Trajectory) -> list[Tokens | None]:
        """Return an episode's streams with a demonstration, None for one that has other names; nothing without a win."""
        if trajectory.failure or not self.wins:
            return []
        win = most_similar(trajectory.task, self.wins)
        return [after_demonstration(stream, trajectory, win, self.policy.format) for stream in trajectory.tokens]


def after_demonstration(stream: Tokens, trajectory: Trajectory, win: Trajectory, format: PromptFormat) -> Tokens | None:
    """Return a stream with a win's actions after its task; None if it begins with another task, under other names."""
    task, added = format.task(trajectory.task), format.demonstration(win.actions)
    start = len(task)
    if stream.ids[:start] != task:
        return None
    return Tokens(
        [*task, *added, *stream.ids[start:]],
        [False] * (start + len(added)) + stream.is_action[start:],
        [0.0] * (start + len(added)) + stream.logprobs[start:],
    )
