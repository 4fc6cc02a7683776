"""Episodes as columns: lists of what was seen, done and earned beside each other, maybe of many episodes (D4RL, Minari)."""

from collections.abc import Mapping
from typing import Any

from tasks.logs.generic.step_fields import up_to_ends

_COLUMNS = {
    **dict.fromkeys(("states", "observations", "obs"), "observation"),
    **dict.fromkeys(("next_states", "next_observations", "next_obs"), "next_observation"),
    **{"actions": "action", "rewards": "reward"},
    **dict.fromkeys(("terminals", "terminations", "terminated", "dones", "done"), "terminated"),
    **dict.fromkeys(("timeouts", "truncations", "truncated"), "truncated"),
}
"""Fields of a step by the names of their columns."""
_ENDS = ("terminated", "truncated")


def steps_of_columns(record: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the steps of a record of columns, and the name of what was seen; there may be one sight more than actions."""
    done = record.get("actions")
    if not done or not isinstance(done, list):  # as in most records
        return None
    columns = _columns_of(record)
    seen = next((name for name in columns if _COLUMNS[name] == "observation"), "")
    if not seen or len(columns[seen]) - len(done) not in (0, 1):
        return None
    steps = [{"observation": sight, "action": action} for sight, action in zip(columns[seen], done, strict=False)]
    after = {"next_observation": columns[seen][-1]} if len(columns[seen]) > len(done) else {}
    return seen, [*steps[:-1], steps[-1] | after]


def episodes_of_columns(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the episodes of a record whose columns say where each ends, as records with steps; none if they do not."""
    found = steps_of_columns(record)
    if not found:
        return []
    seen, steps = found
    fitting = {name: values for name, values in _columns_of(record).items() if len(values) == len(steps)}
    if not any(_COLUMNS[name] in _ENDS for name in fitting):
        return []
    rows = [{**{_COLUMNS[name]: one[at] for name, one in fitting.items()}, **step} for at, step in enumerate(steps)]
    others = {name: value for name, value in record.items() if name not in (seen, *fitting)}
    return [{**others, "steps": some} for some in up_to_ends(rows)]


def _columns_of(record: Mapping[str, Any]) -> dict[str, list[Any]]:
    return {name: record[name] for name in _COLUMNS if isinstance(record.get(name), list)}
