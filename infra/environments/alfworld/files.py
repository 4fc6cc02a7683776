"""Files of ALFWorld's games, as `alfworld-download` lays them out in $ALFWORLD_DATA, or packed there (packed.py).

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
"""Default folder of `alfworld-download`."""
_INSTRUCTION = re.compile(r'"rhs": "Your task is to: (.*?)\.?"')


class GameFiles:
    """Games of one of ALFWorld's splits, in an order that is shuffled but always the same."""

    def __init__(self, split: str) -> None:
        """Find the games of a split: train, valid_seen or valid_unseen.

        Raises:
            InputError: If no games of that split are installed.
        """
        data = Path(os.path.expandvars(os.environ.get("ALFWORLD_DATA", _DEFAULT))).expanduser()
        packed = data / f"{split}.jsonl.xz"
        self.folder = unpacked(packed) if packed.exists() else data / "json_2.1.1" / split
        self._remedy = (
            f"delete {self.folder} to unpack it again"
            if packed.exists()
            else "download it again with `alfworld-download --force`"
        )
        if not self.folder.is_dir():
            raise InputError(
                f"ALFWorld's {split} games are not in {data}: run `alfworld-download`, or set ALFWORLD_DATA to the folder "
                "where they are"
            )

    @cached_property
    def names(self) -> list[str]:
        """Names of all games, as `<what>/<trial>`, without sliced and movable things, as in ALFWorld itself."""
        names = [f"{game.parent.parent.name}/{game.parent.name}" for game in self.folder.glob("*/*/game.tw-pddl")]
        known = [name for name in names if "movable" not in name and "Sliced" not in name]
        return sorted(known, key=lambda name: hashlib.sha256(name.encode()).digest())

    @cached_property
    def things(self) -> list[str]:
        """Things that the games request, in lower case as ALFWorld writes them."""
        return sorted({name.split("-")[1].lower() for name in self.names})

    def is_solvable(self, name: str) -> bool:
        """Return whether a game's file marks it as solvable."""
        return self._read(name).get("solvable", False)

    def instruction(self, name: str) -> str:
        """Return the instruction of a game, e.g. `put a mug in desk`.

        Raises:
            DataError: If its file has no instruction, or cannot be read.
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
