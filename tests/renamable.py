"""Check that no rule of an annotator depends on names: renamed episodes get the same explanations, renamed."""

from collections.abc import Sequence

from models.text.renaming import renamed, renamer
from schemas.ports import Annotator, RealEnvironment
from schemas.records import Trajectory


def require_renamable(environment: RealEnvironment, annotator: Annotator, episodes: Sequence[Trajectory]) -> None:
    """Check that some real episodes are explained alike before and after their names are permuted."""
    for episode, traces in zip(episodes, annotator.annotate(episodes), strict=True):
        names = environment.names(episode.task_as_it_began)
        new = renamer(dict(zip(names, [*names[1:], *names[:1]], strict=True)))
        assert annotator.annotate([renamed(episode, new)]) == [list(map(new, traces))], episode.task.task_id
