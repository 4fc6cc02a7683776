"""Groups of logged episodes of one task that ended differently, to prefer the better ones (offline DPO)."""

from collections import defaultdict
from collections.abc import Sequence

from models.examples.supervised import policy_examples
from models.methods.streams import TrainingGroup, TrainingStream
from models.text.policies.policy_format import PolicyFormat
from schemas.records import Tokens, Trajectory


def differing(episodes: Sequence[Trajectory]) -> dict[str, list[Trajectory]]:
    """Return the episodes of each task whose episodes have different returns; failed ones have none."""
    by_task: dict[str, list[Trajectory]] = defaultdict(list)
    for episode in episodes:
        if not episode.failure:
            by_task[episode.task.task_id].append(episode)
    return {task: several for task, several in by_task.items() if len({one.reward for one in several}) > 1}


def preference_group(format: PolicyFormat, episodes: Sequence[Trajectory], group_id: str) -> TrainingGroup:
    """Return episodes of one task as the policy would have seen them, with their returns.

    Args:
        format: What the policy reads and writes.
        episodes: Episodes with different returns.
        group_id: Id of the group, which decides, with the number of the draw, which of them make a pair.
    """
    streams = [stream for number, one in enumerate(episodes) for stream in _streams(format, one, number)]
    return TrainingGroup(streams, [one.reward for one in episodes], group_id)


def _streams(format: PolicyFormat, episode: Trajectory, number: int) -> list[TrainingStream]:
    """Return an episode's streams; every action counts, and nobody's log-probabilities are known."""
    examples = policy_examples(format, episode)
    actions = [1.0] * (len(episode.turns) if format.remembers_episode else 1)
    return [TrainingStream(Tokens(one.ids, one.is_target, [0.0] * len(one.ids)), actions, number) for one in examples]
