"""Store trajectories as rows of the replay store: the only place where tasks write transitions."""

import re

from infra.context import replay_store, run_context
from schemas.recipes.data import RetrievalRecipe
from schemas.records import Trajectory
from tasks.data.retrieval_index import encoder_of
from tasks.data.rows import Provenance, rows_of, trajectory_id

_TABLE = "transitions"


_CONTENT = ("state", "action", "next_state", "done", "success", "truncated")
"""Columns that show whether a logged transition differs from its stored row."""


def store_rows(trajectories: list[Trajectory], provenance: Provenance, retrieval: RetrievalRecipe, name: str) -> str:
    """Upsert the rows of trajectories, and return the tag that pins and seals the table with them.

    Args:
        trajectories: Trajectories to store, with all their turns.
        provenance: Provenance of every row.
        retrieval: Section that names the encoder of the vectors.
        name: Name of what is stored, e.g. `logs` or `dream-3`; the tag is the run's id and this name.
    """
    tag = _tag(name)
    with run_context().display.timed("storage"):
        rows = rows_of(trajectories, provenance, encoder_of(retrieval.encoder, retrieval.revision))
        replay_store().upsert(_TABLE, rows, tag)
    return tag


def store_logs(trajectories: list[Trajectory], provenance: Provenance, retrieval: RetrievalRecipe) -> str:
    """Upsert the rows of logged episodes, and return the tag; unchanged rows keep the reasoning they may have by now.

    An episode that changed replaces its stored rows: those of a shorter form, or those that the first schema version
    named by their content.
    """
    tag = _tag("logs")
    with run_context().display.timed("storage"):
        rows = rows_of(trajectories, provenance, encoder_of(retrieval.encoder, retrieval.revision))
        if logged := [one for one in trajectories if one.episode_id]:
            names = {trajectory_id(one) for one in logged} | {row["trajectory_id"] for row in rows}
            stored = replay_store().row_ids_of(_TABLE, sorted(names))
            replay_store().delete(_TABLE, sorted(set(stored) - {row["row_id"] for row in rows}))
        replay_store().upsert(_TABLE, rows, tag, unless_same=_CONTENT)
    return tag


def store_shard(trajectories: list[Trajectory], provenance: Provenance, retrieval: RetrievalRecipe, first: int) -> None:
    """Upsert the rows of one shard of a task's episodes, whose first episode has this number; see pin_rows."""
    with run_context().display.timed("storage"):
        rows = rows_of(trajectories, provenance, encoder_of(retrieval.encoder, retrieval.revision), first)
        replay_store().upsert(_TABLE, rows)


def pin_rows(name: str) -> str:
    """Pin and seal the table as it is now, with all shards, and return the tag."""
    tag = _tag(name)
    with run_context().display.timed("storage"):
        replay_store().pin(_TABLE, tag)
    return tag


def _tag(name: str) -> str:
    return re.sub(r"[^\w.-]", "-", f"{run_context().run_id}-{name}")
