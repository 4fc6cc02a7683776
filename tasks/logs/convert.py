"""Convert logs of any size into a folder of Parquet files, part by part, so that an interrupted conversion resumes."""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel

from infra.files.durable_files import write_durably
from schemas.errors import DataError
from schemas.recipes.log_mapping import LogMapping
from schemas.tables import LOGGED_TRANSITIONS
from tasks.logs.episodes import names_in_use
from tasks.logs.known_kinds import spans_files
from tasks.logs.read_log import as_it_came, kind_of, quarantined
from tasks.logs.rules import reasons_against
from tasks.logs.sources.beside import VerdictsBeside
from tasks.logs.sources.files import files_in
from tasks.logs.sources.records import Record
from tasks.logs.transitions import Episode, episodes_in

_ROWS_PER_PART = 20_000
_EPISODES_PER_PART = 20_000
"""Maximum number of episodes per part; most of them may hold no rows."""
_LOOKED_AT = 200
"""Maximum number of episodes examined for samples."""
_PROGRESS = ".progress.json"  # hidden, so that it is not read as a log
_TYPES = {name: str(column.dtype) for name, column in LOGGED_TRANSITIONS.columns.items()}


class Converted(BaseModel):
    """Progress of a conversion."""

    of: str
    """Digest of the input: files, their sizes and times, and the mapping."""
    num_parts: int = 0
    num_episodes: int = 0
    """Number of episodes examined, accepted or not."""
    num_rows: int = 0
    """Number of accepted transitions."""
    reasons: Counter[str] = Counter()
    """Number of quarantined rows and records by reason."""
    remarks: Counter[str] = Counter()
    """Number of episodes by what was changed in them, or contradicts itself."""
    kinds: Counter[str] = Counter()
    """Number of episodes, accepted or not, by the name of their log's kind."""
    verdicts: Counter[str] = Counter()
    """Number of episodes by the field that gave their verdict."""
    finished: bool = False


def convert(
    source: Path,
    mapping: LogMapping,
    folder: Path,
    quarantine: Callable[[Sequence[dict[str, str]]], None],
    on_part: Callable[[Converted], None] = lambda converted: None,
) -> Converted:
    """Write all transitions of a log as `part-*.parquet`; rejected rows and records are quarantined.

    Args:
        source: File or folder of logs.
        mapping: Locations of the fields in a log's records.
        folder: Output folder; an interrupted conversion of the same log is resumed there.
        quarantine: Called with rows of the quarantine table, some of them again after an interruption.
        on_part: Called after each part.

    Raises:
        DataError: there is nothing to read, or the folder holds another conversion.
    """
    files = files_in(source)
    converted = _begun(folder, _digest(files, mapping))
    left = islice(_named(episodes_in(files, mapping)), converted.num_episodes, None)
    for episodes in () if converted.finished else _parts(left):
        good, bad = _sifted(episodes)
        if len(good):
            write_durably(folder / f"part-{converted.num_parts:05}.parquet", _parquet(good))
        quarantine([quarantined(one) for one in bad])
        converted.num_parts += 1
        converted.num_episodes += len(episodes)
        converted.num_rows += len(good)
        converted.reasons.update(kind_of(one.reason) for one in bad)
        converted.kinds.update(one.kind for one in episodes if one.kind)
        converted.verdicts.update(one.verdict_at for one in episodes if one.verdict_at)
        converted.remarks.update(remark for one in episodes for remark in one.remarks)
        _keep(folder, converted)
        on_part(converted)
    converted.finished = True
    _keep(folder, converted)
    return converted


def is_converted(folder: Path) -> bool:
    """Return whether a folder holds a conversion."""
    return (folder / _PROGRESS).is_file()


@dataclass
class Samples:
    """Beginning of a log, as it is understood."""

    taken: list[list[dict[str, Any]]] = field(default_factory=list)
    """Rows of episodes that would be accepted."""
    refused: list[Record] = field(default_factory=list)
    """One rejected record of each episode that would not."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Number of episodes by the name of their log's kind."""
    verdicts: Counter[str] = field(default_factory=Counter)
    """Number of episodes by the field that gave their verdict."""

    @property
    def reasons(self) -> Counter[str]:
        """Number of refused episodes by reason."""
        return Counter(kind_of(one.reason) for one in self.refused)


def samples(source: Path, mapping: LogMapping, count: int) -> Samples:
    """Return the first episodes of a log, up to this number of accepted ones.

    They are looked for file by file, and in all files together where an episode may be in several.
    """
    files = files_in(source)
    verdicts = VerdictsBeside(files)
    each = (episodes_in({name: file}, mapping, verdicts) for name, file in files.items())
    found = _looked_at(chain.from_iterable(each), count)
    if len(files) == 1 or not (mapping.joined_by or any(map(spans_files, found.kinds))):
        return found
    return _looked_at(episodes_in(files, mapping, verdicts), count)


def _looked_at(episodes: Iterable[Episode], count: int) -> Samples:
    found = Samples()
    for episode in islice(episodes, _LOOKED_AT):
        good, bad = _sifted([episode])
        found.taken += [good.to_dict("records")] if len(good) else []
        found.refused += bad[:1]
        found.kinds.update(filter(None, [episode.kind]))
        found.verdicts.update(filter(None, [episode.verdict_at]))
        if len(found.taken) >= count:
            break
    return found


def _named(episodes: Iterable[Episode]) -> Iterator[Episode]:
    """Yield episodes with names that tell them apart."""
    with names_in_use() as names:
        for one in episodes:
            yield replace(one, rows=names.distinguished(one.rows))


def _parts(episodes: Iterator[Episode]) -> Iterator[list[Episode]]:
    """Yield lists of episodes with about the same number of rows.

    A part has each id once: ids may begin anew in each file, and those who read a part tell episodes apart by their ids.
    """
    some: list[Episode] = []
    names: set[Any] = set()
    num_rows = 0
    for episode in episodes:
        own = {repr(row.get("trajectory_id")) for row in episode.rows}
        if num_rows >= _ROWS_PER_PART or len(some) >= _EPISODES_PER_PART or own & names:
            yield some
            some, names, num_rows = [], set(), 0
        some.append(episode)
        names |= own
        num_rows += len(episode.rows)
    if some:
        yield some


def _sifted(episodes: Sequence[Episode]) -> tuple[pd.DataFrame, list[Record]]:
    """Return the accepted rows, and the rejected ones with reasons."""
    places = [f"{one.where}, turn {turn}" for one in episodes for turn in range(len(one.rows))]
    rows = [row for one in episodes for row in one.rows]
    frame = pd.DataFrame(rows, columns=list(_TYPES)).fillna({"thought": ""}) if rows else pd.DataFrame()
    reasons = reasons_against(frame) if rows else {}
    bad = [Record(places[at], {}, reason, as_it_came(frame.loc[at])) for at, reason in reasons.items()]
    unread = [Record(one.where, {}, one.reason, one.raw) for one in episodes if one.reason]
    return frame.drop(index=list(reasons)), bad + unread


def _parquet(frame: pd.DataFrame) -> bytes:
    content = io.BytesIO()
    frame.astype(_TYPES).to_parquet(content, index=False)
    return content.getvalue()


def _digest(files: Mapping[str, Path], mapping: LogMapping) -> str:
    known = [f"{file.resolve()} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files.values()]
    return sha256("\n".join([*known, mapping.model_dump_json(exclude_defaults=True)]).encode()).hexdigest()


def _begun(folder: Path, digest: str) -> Converted:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / _PROGRESS
    if not file.exists():
        if any(folder.iterdir()):
            raise DataError(f"{folder} holds something else: name a new or empty folder with --to")
        _keep(folder, Converted(of=digest))
    converted = Converted.model_validate_json(file.read_bytes())
    if converted.of == digest:
        return converted
    if converted.num_rows:
        raise DataError(
            f"{folder} holds another log, or the same one under another mapping: remove it, or name another folder with --to"
        )
    _keep(folder, Converted(of=digest))  # no transition was accepted before
    return Converted(of=digest)


def _keep(folder: Path, converted: Converted) -> None:
    write_durably(folder / _PROGRESS, converted.model_dump_json().encode())
