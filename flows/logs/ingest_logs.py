"""`dreamgym ingest`: convert agent logs from elsewhere to transitions for a recipe's `ingest.path`."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.prompt import Prompt

from flows.logs.draft_mapping import drafted
from flows.planning.problems import problem
from infra.context import replay_store
from infra.settings import settings
from schemas.errors import DataError, InputError
from schemas.recipes.log_mapping import LogMapping
from tasks.logs.convert import Converted, Samples, convert, is_converted, samples
from tasks.logs.known_kinds import title_of
from tasks.logs.verdicts import NO_VERDICT

_NUM_SAMPLES, _SHOWN_STEPS, _SHOWN_CHARACTERS = 3, 2, 300


def load_mapping(path: Path | None) -> LogMapping:
    """Return the log mapping of a TOML file; without one, the defaults.

    Raises:
        InputError: the file is missing, is not TOML, or has an unknown field.
    """
    if path is None:
        return LogMapping()
    try:
        return LogMapping.model_validate(tomllib.loads(path.read_text()))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"mapping {path} cannot be read: {error}") from error
    except ValidationError as error:
        raise InputError(f"mapping {path}: {'; '.join(problem(one, [LogMapping]) for one in error.errors())}") from None


def with_verdict(mapping: LogMapping, success: bool | None) -> LogMapping:
    """Return a mapping that gives this outcome to all episodes of which the log says none; None: none is given."""
    return mapping if success is None else mapping.model_copy(update={"success_otherwise": success})


def show_samples(source: Path, mapping: LogMapping, console: Console) -> Samples:
    """Print how the first episodes of a log are understood, and return them."""
    found = samples(source, mapping, _NUM_SAMPLES)
    for rows in found.taken:
        _show_episode(rows, console)
    for one in found.refused[:_NUM_SAMPLES]:
        console.print(f"not taken: {one.where}: {one.reason}", style="red", markup=False, soft_wrap=True)
    return found


def understood(source: Path, mapping: LogMapping, console: Console, *, may_ask: bool) -> tuple[LogMapping, Samples]:
    """Print how a log is understood; return the mapping and the samples, with a verdict that a person may be asked for."""
    found = show_samples(source, mapping, console)
    if not (may_ask and lacks_only_verdicts(found)):
        return mapping, found
    mapping = with_verdict(mapping, _asked_verdict(found, source, console))
    return mapping, show_samples(source, mapping, console)


def _asked_verdict(found: Samples, source: Path, console: Console) -> bool:
    """Ask on the terminal whether all episodes of a log succeeded.

    Raises:
        DataError: they are not alike.
    """
    question = f"{_named(found.kinds)} understood, and no verdict in them. Did all episodes succeed?"
    answer = Prompt.ask(question, choices=["yes", "no", "stop"], console=console)
    if answer == "stop":
        raise DataError(f"{source}: say with --mapping where the verdicts are")
    return answer == "yes"


def lacks_only_verdicts(found: Samples | Converted) -> bool:
    """Return whether nothing was taken for want of verdicts alone."""
    return _is_empty(found) and list(found.reasons) == [NO_VERDICT]


def require_understood(found: Samples | Converted, source: Path) -> None:
    """Refuse a log of which nothing was understood.

    Raises:
        DataError: no episode was taken.
    """
    if lacks_only_verdicts(found):
        raise DataError(
            f"{source}: {_named(found.kinds)} understood, and none says whether it succeeded: give all of them an outcome "
            "with --success or --failure, or say with --mapping where it is"
        )
    if _is_empty(found):
        seen = f" ({_named(found.kinds)})" if found.kinds else ""
        raise DataError(
            f"{source}: nothing in it is understood{seen}; describe it with --mapping (README, Your own logs)"
        )


def write_draft(mapping: LogMapping, found: Samples, file: Path) -> None:
    """Write the mapping by which a log was read for people to correct.

    Raises:
        InputError: there is such a file already.
    """
    try:
        with file.open("x") as written:
            written.write(drafted(mapping, found))
    except FileExistsError:
        raise InputError(f"{file} is there already: name a new file with --draft") from None


def _is_empty(found: Samples | Converted) -> bool:
    return not (found.taken if isinstance(found, Samples) else found.num_rows)


def _named(kinds: Counter[str]) -> str:
    """Return kinds of logs in words, each with its number of episodes."""
    return ", ".join(f"{title_of(kind)}: {number:,} episodes" for kind, number in kinds.most_common())


def _show_episode(rows: list[dict[str, Any]], console: Console) -> None:
    first, last = rows[0], rows[-1]
    outcome = "success" if last["success"] else "truncated" if last["truncated"] else "failure"
    console.rule(f"{first['trajectory_id']}: {len(rows)} steps, {outcome}", align="left")
    facts = {name: first[name] for name in ("task_id", "family", "source", "instruction")}
    console.print(*(f"{name}: {_short(value)}" for name, value in facts.items()), sep="\n", markup=False)
    for row in rows[:_SHOWN_STEPS]:
        console.print(_short(row["state"]), f"> {_short(row['action'])}", sep="\n", markup=False)
    console.print(_short(rows[:_SHOWN_STEPS][-1]["next_state"]), markup=False)


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def folder_for(source: Path) -> Path:
    """Return the folder of this home for the transitions of a log."""
    return settings().home / "logs" / source.resolve().stem


def converted_logs(source: Path, success: bool | None, console: Console, *, may_ask: bool) -> Path:
    """Return the folder of a log's transitions, which are converted there unless the log is such a folder.

    Args:
        source: File or folder of logs.
        success: Outcome of all episodes; None: the one that the log says.
        console: Where samples and progress go.
        may_ask: A person is at a terminal to be asked for a missing verdict.

    Raises:
        DataError: the log is not understood.
    """
    if is_converted(source):
        return source
    mapping, found = understood(source, with_verdict(LogMapping(), success), console, may_ask=may_ask)
    require_understood(found, source)
    folder = folder_for(source)
    converted = ingest_logs(source, mapping, folder, console)
    require_understood(converted, source)
    print_counts(converted, folder, console)
    return folder


def ingest_logs(source: Path, mapping: LogMapping, folder: Path, console: Console) -> Converted:
    """Convert a log, or resume its conversion; bad rows go to the quarantine table.

    Raises:
        DataError: there is nothing to read, or the folder holds something else.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        shown = progress.add_task("reading")
        return convert(
            source,
            mapping,
            folder,
            lambda rows: replay_store().upsert("quarantine", rows),
            lambda now: progress.update(
                shown, description=f"{now.num_rows:,} transitions of {now.num_episodes:,} episodes"
            ),
        )


def print_converted(converted: Converted, folder: Path, console: Console) -> None:
    """Print how much was converted and quarantined, and what to do next."""
    print_counts(converted, folder, console)
    if converted.num_rows:
        console.print(f"next: dreamgym run RECIPE --set ingest.path={folder}", markup=False, soft_wrap=True)


def print_counts(converted: Converted, folder: Path, console: Console) -> None:
    """Print how much was converted and quarantined."""
    console.print(f"{converted.num_rows:,} transitions of {converted.num_episodes:,} episodes are in {folder}")
    verdicts = ", ".join(converted.verdicts) or "nothing"
    console.print(f"{_named(converted.kinds)}; verdicts from {verdicts}", markup=False)
    for reason, count in converted.reasons.most_common():
        console.print(f"quarantined {count:,}: {reason}", markup=False)
    if converted.reasons:
        console.print("examples: dreamgym quarantine")
    for remark, count in converted.remarks.most_common():
        console.print(f"episodes with {remark}: {count:,}", markup=False)
