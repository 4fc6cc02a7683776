"""Begin a run if there is a reason, resume an interrupted one, or report that nothing is new."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from flows.runs.extent import extent_of
from flows.runs.find_policy import find_policy
from flows.runs.run_key import differences, run_key
from flows.stage import Stage
from infra.promotion.ledger import Ledger
from infra.settings import settings
from infra.storage.blobs import open_blobs
from infra.storage.run_records import create_record, records
from schemas.plain import restored
from schemas.recipes.learning import StartRecipe
from schemas.recipes.recipe import Recipe
from schemas.runs import LeftBehind, Record, RunHead, RunKey, Status, Trigger


@dataclass(frozen=True, slots=True)
class Begun:
    """A run to work on, or an earlier one that has already done everything."""

    recipe: Recipe
    record: Record
    nothing_new: bool = False

    def left_as_it_is(self, say: Callable[[str], None]) -> Record:
        """Say that nothing is new, and return the record with a mark of it."""
        say(f"nothing is new since run {self.record['run_id']}. To run the next seed: --again")
        return {**self.record, "nothing_new": True}


def begin_run(
    recipe: Recipe, until: Stage, trigger: Trigger, say: Callable[[str], None], *, again: bool = False
) -> Begun:
    """Return the run of a recipe to work on now.

    Args:
        recipe: Recipe to run.
        until: Last requested stage.
        trigger: Cause that starts the run.
        say: Prints what was decided.
        again: Begin a run without another reason, with the next seed.
    """
    while True:
        stored = records()
        mine = [one for one in stored if one["recipe"]["name"] == recipe.name]
        if again:
            recipe = _with_next_seed(recipe, mine)
        key = run_key(recipe)
        if same := [one for one in mine if one["key"] and RunKey.model_validate(one["key"]) == key]:
            return _of_the_same_key(recipe, same[-1], until, say)
        head = _head(recipe, key, stored, mine, until, trigger, again=again)
        if create_record(record := head.model_dump(mode="json")):
            say(f"run {head.run_id}: {extent_of(recipe, until)}")
            say(f"reason: {'; '.join(head.reasons)}")
            _tell_what_is_odd(head, mine, say)
            return Begun(recipe, record)


def _tell_what_is_odd(head: RunHead, mine: list[Record], say: Callable[[str], None]) -> None:
    """Report a log that differs from the one a finished run read, and a clock that was set back."""
    if any(reason.startswith(("changed: ", "gone: ")) for reason in head.reasons):
        say(f"run {mine[-1]['run_id']} keeps what it read: its transitions are pinned")
    if later := [one for one in mine if one["started_utc"] > head.started_utc]:
        began = later[-1]["started_utc"]
        say(f"the clock says {head.started_utc}, and run {later[-1]['run_id']} began at {began}: runs keep their order")


def _of_the_same_key(recipe: Recipe, record: Record, until: Stage, say: Callable[[str], None]) -> Begun:
    """Return the run as having nothing new if it reached the requested stage; else resume it."""
    if has_reached(record, until):
        return Begun(recipe, record, nothing_new=True)
    why = {
        Status.FINISHED: f"stopped after {record['reached']}",
        Status.RUNNING: "is worked on by another process",
        Status.FAILED: "failed",
    }.get(record["status"], "was interrupted")
    say(f"run {record['run_id']}: {extent_of(recipe, until)}")
    say(f"it {why}: going on from its last finished step")
    return Begun(recipe, record)


def has_reached(record: Record, until: Stage) -> bool:
    """Return whether a run completed a stage.

    Sim-to-real is not complete if the run's policy was promoted only later.
    """
    if not record["reached"] or Stage(record["reached"]).place < until.place:
        return False
    waits = record.get("promoted") == "dream" and "sim_to_real" not in record["lineage"]
    return not (until is Stage.REAL and waits)


def _with_next_seed(recipe: Recipe, mine: list[Record]) -> Recipe:
    """Return the recipe with the seed after all earlier ones; an unfinished run begun in this way keeps its seed."""
    if not mine:
        return recipe
    last = mine[-1]
    if last["asked_again"] and last["status"] != Status.FINISHED:
        return recipe.model_copy(update={"seed": last["recipe"]["seed"]})
    return recipe.model_copy(update={"seed": max(one["recipe"]["seed"] for one in mine) + 1})


def _head(
    recipe: Recipe,
    key: RunKey,
    stored: list[Record],
    mine: list[Record],
    until: Stage,
    trigger: Trigger,
    *,
    again: bool,
) -> RunHead:
    number, day = _next_number_and_day(stored)
    taken = {one["run_id"] for one in mine}
    name = next(name for n in range(1, len(taken) + 2) if (name := f"{recipe.name}-{day:%Y%m%d}-{n}") not in taken)
    return RunHead(
        run_id=name,
        number=number,
        recipe=recipe.model_dump(mode="json"),
        recipe_digest=recipe.digest,
        trigger=trigger,
        reasons=_reasons(key, mine, again=again),
        asked_again=again,
        until=until,
        started_utc=datetime.now(UTC).isoformat(timespec="seconds"),
        key=key,
        left_behind=_left_behind(recipe.start, mine),
    )


def _next_number_and_day(stored: list[Record]) -> tuple[int, datetime]:
    """Return the next run number and the day of its id.

    If the clock was set back, the day is that of the latest run.
    """
    days = [datetime.fromisoformat(one["started_utc"]) for one in stored]
    return max((one["number"] for one in stored), default=0) + 1, max([datetime.now(UTC), *days])


def _reasons(key: RunKey, mine: list[Record], *, again: bool) -> list[str]:
    compared = [one for one in mine if one["key"]]
    if again:
        return [f"asked for again, with seed {key.recipe.get('seed', 0)}"]
    if not compared:
        return ["the first run of this recipe here"]
    found = differences(RunKey.model_validate(compared[-1]["key"]), key)
    return found or ["the latest run of this recipe had another seed"]


def _left_behind(start: StartRecipe, mine: list[Record]) -> LeftBehind:
    lineages = [restored(one["lineage"]) for one in mine if one.get("lineage")]
    last: dict[str, Any] = next((one for one in reversed(lineages) if "experience_model" in one), {})
    return LeftBehind(
        champion=Ledger(open_blobs(settings())).history().champion,
        policy=find_policy(start.run, start.policy).reference if start.run else None,
        experience_model=last.get("experience_model"),
        experience=last.get("experience", []),
        backbone=last.get("backbone"),
    )
