"""Store trajectories as rows of the replay store: the one place where tasks write transitions."""

from infra.doors import cycle, replay_store
from schemas.recipe import RetrievalRecipe
from schemas.records import Trajectory
from tasks.retrieval_index import encoder_of
from tasks.rows import Provenance, rows_of


def store_rows(
    trajectories: list[Trajectory],
    provenance: Provenance,
    retrieval: RetrievalRecipe,
    name: str,
    *,
    replace: bool = True,
) -> str:
    """Upsert the rows of trajectories; returns the tag that pins the table as it is with them.

    Args:
        trajectories: All their turns are stored.
        provenance: On every row.
        retrieval: Names the encoder of the vectors.
        name: What was stored, such as `logs` or `dream-3`; the tag says it after the cycle's id.
        replace: Rows that are there are replaced; else they stay, with the reasoning that they may have by now.
    """
    tag = f"{cycle().cycle_id}-{name}"
    with cycle().display.stage("storage"):
        rows = rows_of(trajectories, provenance, encoder_of(retrieval.encoder, retrieval.revision))
        replay_store().upsert("transitions", rows, tag, replace=replace)
    return tag
