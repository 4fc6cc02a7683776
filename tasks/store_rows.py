"""Store trajectories as rows of the replay store: the one place where tasks write transitions."""

import re

from infra.doors import cycle, replay_store
from schemas.recipe import RetrievalRecipe
from schemas.records import Trajectory
from tasks.retrieval_index import encoder_of
from tasks.rows import Provenance, rows_of

_TABLE = "transitions"


def store_rows(
    trajectories: list[Trajectory],
    provenance: Provenance,
    retrieval: RetrievalRecipe,
    name: str,
    *,
    replace: bool = True,
) -> str:
    """Upsert the rows of trajectories; returns the tag that pins and seals the table as it is with them.

    Args:
        trajectories: All their turns are stored.
        provenance: On every row.
        retrieval: Names the encoder of the vectors.
        name: What was stored, such as `logs` or `dream-3`; the tag says it after the cycle's id.
        replace: Rows that are there are replaced; else they stay, with the reasoning that they may have by now.
    """
    tag = _tag(name)
    with cycle().display.stage("storage"):
        rows = rows_of(trajectories, provenance, encoder_of(retrieval.encoder, retrieval.revision))
        replay_store().upsert(_TABLE, rows, tag, replace=replace)
    return tag


def store_shard(trajectories: list[Trajectory], provenance: Provenance, retrieval: RetrievalRecipe, first: int) -> None:
    """Upsert the rows of a part of what a task plays, of which the first episode has this number; see pin_rows."""
    with cycle().display.stage("storage"):
        rows = rows_of(trajectories, provenance, encoder_of(retrieval.encoder, retrieval.revision), first)
        replay_store().upsert(_TABLE, rows)


def pin_rows(name: str) -> str:
    """The tag that pins and seals the table as it is now, with all shards."""
    tag = _tag(name)
    with cycle().display.stage("storage"):
        replay_store().pin(_TABLE, tag)
    return tag


def _tag(name: str) -> str:
    return re.sub(r"[^\w.-]", "-", f"{cycle().cycle_id}-{name}")
