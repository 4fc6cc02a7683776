"""ALFWorld's games in one xz-compressed file, one JSON object a line: id, task_type, task, params, problem.

They are unpacked into the cache on first use, one folder per game as ALFWorld expects.
"""

import json
import lzma
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_path

from infra.files.digests import sha256_of
from schemas.errors import DataError


def unpacked(packed: Path) -> Path:
    """Return the folder with the games of a packed file, e.g. `train.jsonl.xz`.

    Raises:
        DataError: If the file is damaged.
    """
    digest = sha256_of(packed)
    cache = user_cache_path("dreamgym") / "alfworld"
    folder = cache / f"{packed.name.partition('.')[0]}-{digest[:12]}"
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            _unpack(packed, folder)
    return folder


def _unpack(packed: Path, folder: Path) -> None:
    """Unpack all games or none: an unfinished folder has another name."""
    unfinished = folder.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    rules = _rules()
    try:
        with lzma.open(packed, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                _write(unfinished / row["id"].partition("/")[2], row, rules)
    except (lzma.LZMAError, EOFError, ValueError, LookupError, TypeError) as error:
        raise DataError(
            f"{packed} is damaged ({type(error).__name__}: {error}): put a whole one in its place"
        ) from error
    unfinished.rename(folder)


def _rules() -> tuple[str, str]:
    """Return domain and grammar, which are the same for all games and come with ALFWorld."""
    data = files("alfworld") / "data"
    return (data / "alfred.pddl").read_text(), (data / "alfred.twl2").read_text()


def _write(folder: Path, row: dict[str, Any], rules: tuple[str, str]) -> None:
    folder.mkdir(parents=True)
    domain, grammar = rules
    asked = row["task"].removeprefix("Your task is to: ").removesuffix(".")
    game = {
        "pddl_domain": domain,
        "grammar": grammar.replace("UNKNOWN GOAL", asked),
        "pddl_problem": row["problem"],
        "solvable": True,
    }
    (folder / "game.tw-pddl").write_text(json.dumps(game))
    known_to_the_expert = {"task_type": row["task_type"], "pddl_params": row["params"]}
    (folder / "traj_data.json").write_text(json.dumps(known_to_the_expert))
