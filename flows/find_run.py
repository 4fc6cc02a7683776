"""Find a cycle by id, by the start of its id, or the latest."""

from typing import Any

from infra.cycles import summaries
from schemas.errors import InputError


def find_run(name: str | None) -> dict[str, Any]:
    """The summary of one cycle.

    Raises:
        InputError: none is stored, none has that name, or several have.
    """
    stored = summaries()
    if not stored:
        raise InputError("no finished cycle in this home; start one with `dreamgym run textworld-tiny`")
    if name is None:
        return stored[-1]
    matching = [one for one in stored if one["cycle_id"].startswith(name)]
    if len(matching) != 1:
        known = ", ".join(one["cycle_id"] for one in stored[-8:])
        raise InputError(f"{len(matching)} cycles are called {name!r}; stored are {known}")
    return matching[0]
