"""Tasks drawn by the reward entropy of clusters of similar tasks (paper, Eq. 7, for PPO)."""

from collections import defaultdict
from collections.abc import Sequence

from pydantic import Field

from models.methods.curricula.reward_entropy import RewardEntropy, RewardEntropyOptions
from models.methods.entropies import reward_entropy
from models.retrieval.encoders import HashingEncoder
from schemas.records import Trajectory


class ClustersOptions(RewardEntropyOptions):
    """Options of the curriculum by clusters."""

    num_clusters: int = Field(default=32, ge=1)
    """Maximum number of clusters of a round's tasks."""


class Clusters(RewardEntropy):
    """Tasks drawn by the reward entropy of the cluster that they belong to.

    Source: paper, Eq. 7: without groups of episodes of one task, as in PPO, similar tasks are compared.
    Differs: the paper does not say how it clusters; here by k-means over hashed words of instruction and first state.
    """

    Options = ClustersOptions
    options: ClustersOptions

    def observe(self, trajectories: Sequence[Trajectory]) -> None:
        """Take note of the outcomes of a round, cluster by cluster; failed episodes have none."""
        whole = [one for one in trajectories if not one.failure]
        outcomes: dict[int, list[float]] = defaultdict(list)
        clusters = self._clusters(whole)
        for one in whole:
            outcomes[clusters[one.task.task_id]].append(one.reward)
        entropies = {cluster: reward_entropy(rewards) for cluster, rewards in outcomes.items()}
        self.entropies |= {task_id: entropies[cluster] for task_id, cluster in clusters.items()}

    def _clusters(self, episodes: Sequence[Trajectory]) -> dict[str, int]:
        """Return the number of each task's cluster, by task id."""
        from sklearn.cluster import KMeans  # importing it takes a second

        texts = {one.task.task_id: f"{one.task.instruction}\n{one.turns[0].state}" for one in episodes}
        if not texts:
            return {}
        vectors = HashingEncoder().encode(list(texts.values()))
        num_clusters = min(self.options.num_clusters, len({vector.tobytes() for vector in vectors}))
        labels = KMeans(num_clusters, random_state=0).fit_predict(vectors)
        return dict(zip(texts, labels.tolist(), strict=True))
