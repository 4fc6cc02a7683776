"""The files of ALFWorld's games, as `alfworld-download` lays them out in $ALFWORLD_DATA, or packed there (packed.py).

json_2.1.1/train/pick_and_place_simple-Mug-None-Desk-301/trial_T2019/{game.tw-pddl, traj_data.json}
"""

import hashlib
import json
import os
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from infra.environments.alfworld.packed import unpacked
from schemas.errors import DataError, InputError

_DEFAULT = "~/.cache/alfworld"
"""Where `alfworld-download` puts them if nothing else is said."""
_INSTRUCTION = re.compile(r'"rhs": "Your task is to: (.*?)\.?"')


class GameFiles:
    """The solvable games of one of ALFWorld's splits, in an order that is shuffled once and for all."""

    def __init__(self, split: str) -> None:
        """Of train, valid_seen or valid_unseen.

        Raises:
            InputError: no games of that split are here.
        """
        data = Path(os.path.expandvars(os.environ.get("ALFWORLD_DATA", _DEFAULT))).expanduser()
        packed = data / f"{split}.jsonl.xz"
        self.folder = unpacked(packed) if packed.exists() else data / "json_2.1.1" / split
        self._remedy = (
            f"delete {self.folder}, and it is unpacked anew"
            if packed.exists()
            else "`alfworld-download --force` fetches it anew"
        )
        if not self.folder.is_dir():
            raise InputError(
                f"ALFWorld's {split} games are not in {data}: run `alfworld-download`, or set ALFWORLD_DATA to the folder "
                "where they are"
            )

    @cached_property
    def names(self) -> list[str]:
        """Of all games, as `<what>/<trial>`; those of sliced and movable things are left out, as ALFWorld itself does."""
        names = [f"{game.parent.parent.name}/{game.parent.name}" for game in self.folder.glob("*/*/game.tw-pddl")]
        known = [name for name in names if "movable" not in name and "Sliced" not in name]
        return sorted(known, key=lambda name: hashlib.sha256(name.encode()).digest())

    @cached_property
    def things(self) -> list[str]:
        """What its games ask for, as ALFWorld writes them."""
        return sorted({name.split("-")[1].lower() for name in self.names})

    def is_solvable(self, name: str) -> bool:
        """Whether ALFWorld's makers found a game to be so."""
        return self._read(name).get("solvable", False)

    def instruction(self, name: str) -> str:
        """What a game asks for, such as `put a mug in desk`.

        Raises:
            DataError: its file does not say, or cannot be read.
        """
        if found := _INSTRUCTION.search(self._read(name).get("grammar", "")):
            return found[1]
        raise DataError(f"{self.folder / name}: the grammar of game.tw-pddl has no line 'Your task is to'")

    def _read(self, name: str) -> dict[str, Any]:
        file = self.folder / name / "game.tw-pddl"
        try:
            return json.loads(file.read_bytes())
        except (OSError, ValueError) as error:
            raise DataError(f"{file} cannot be read: {error}. Mend it: {self._remedy}") from error
