"""Store trajectories as rows of the replay store: the one place where tasks write transitions."""

from infra.doors import replay_store
from schemas.recipe import RetrievalRecipe
from schemas.records import Trajectory
from tasks.retrieval_index import encoder_of
from tasks.rows import Provenance, rows_of


def store_rows(trajectories: list[Trajectory], provenance: Provenance, retrieval: RetrievalRecipe) -> None:
    """Upsert the rows of trajectories into the replay store."""
    encoder = encoder_of(retrieval.encoder, retrieval.revision)
    store = replay_store(3 * encoder.num_dimensions)
    store.upsert("transitions", rows_of(trajectories, provenance, encoder))
