"""Shares of the logged tasks to hold out where so few are logged that the usual shares would leave a split too small."""

from collections import Counter
from collections.abc import Iterable, Sequence

from schemas.errors import DataError
from schemas.recipes.environments import LogsRecipe
from schemas.records import Trajectory
from tasks.data.held_out_logs import LEAST, SPLITS, is_dealt, place_of, split_of, with_splits

_USUAL = LogsRecipe()
_DIGITS = 12


def held_out_shares(episodes: Sequence[Trajectory]) -> dict[str, float]:
    """Return the shares that leave two tasks or more to each split, by field; empty if the usual ones do.

    Raises:
        DataError: too few tasks are logged, in all or in a split that the log names.
    """
    tasks = {one.task.task_id for one in episodes}
    if len(tasks) < LEAST * len(SPLITS):
        raise DataError(
            f"a recipe of logs alone needs {LEAST * len(SPLITS)} tasks, {LEAST} each to learn from, to calibrate and to report on, "
            f"and {len(tasks)} are logged: log more tasks, or name the environment that they are of (--environment)"
        )
    if is_dealt(episodes) or all(count >= LEAST for count in _counts(tasks)):
        with_splits(episodes, _USUAL)
        return {}
    return _shares_of_few(sorted(map(place_of, tasks)))


def _counts(tasks: Iterable[str]) -> list[int]:
    """Return the number of tasks that each split has by the usual shares."""
    found = Counter(split_of(task, _USUAL) for task in tasks)
    return [found[split] for split in SPLITS]


def _shares_of_few(places: Sequence[float]) -> dict[str, float]:
    """Return shares that end between the places of tasks, as near to the usual ones as two tasks each allow."""
    num_test = max(LEAST, round(_USUAL.test_share * len(places)))
    num_held_out = num_test + max(LEAST, round(_USUAL.valid_share * len(places)))
    test, held_out = (_between(*places[end - 1 : end + 1]) for end in (num_test, num_held_out))
    return {"test_share": test, "valid_share": round(held_out - test, _DIGITS)}


def _between(low: float, high: float) -> float:
    """Return a number between two others with as few digits as will do."""
    middle = (low + high) / 2
    return next((short for digits in range(_DIGITS) if low < (short := round(middle, digits)) < high), middle)
