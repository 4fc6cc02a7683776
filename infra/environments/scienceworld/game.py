"""One game of ScienceWorld after another, all of a process in one Java machine.

The only file that imports scienceworld.
"""

import json
import random
import zlib
from functools import lru_cache
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from scienceworld.constants import BASEPATH, JAR_PATH

from infra.environments.processes import Seen
from infra.environments.scienceworld.view import state_text
from infra.environments.single_games import Outcome
from schemas.errors import InputError

_MAX_ACTION = 200
"""Characters: what is longer is no action."""
_SHOWN_PER_TEMPLATE = 2
_WON = 1.0
_JAVA_OPTIONS = ["-Xmx1g"]
"""Else each process's Java machine grows to a quarter of all memory before it tidies up."""


@lru_cache(maxsize=1)
def _java() -> Any:
    """What is in this process's Java machine, which ends with the process."""
    port: Any = launch_gateway(classpath=JAR_PATH, cwd=BASEPATH, javaopts=_JAVA_OPTIONS, die_on_exit=True)
    return JavaGateway(gateway_parameters=GatewayParameters(auto_field=True, port=port)).jvm


def _singleton(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


class ScienceworldGame:
    """Plays games, with their solutions beside it.

    All games of a Java machine draw from one source of chance and number their things in one row. So that no game depends
    on those beside it, each sets both before its turn to what they would be if it were alone.
    """

    def __init__(self) -> None:
        """Nothing loaded yet."""
        java = _java()
        self._chance, self._numbering = _singleton(java.scala.util, "Random"), _singleton(java.util, "UniqueIdentifier")
        self._server = java.scienceworld.runtime.pythonapi.PythonInterface()
        self._variations: dict[tuple[str, str], list[int]] = {}

    def reset(self, which: tuple[str, str, int, str]) -> Seen:
        """Begin a game, of a task's name, a split, a number in it and simplifications.

        Raises:
            InputError: the split has not so many.
        """
        name, split, number, simplifications = which
        variations = self._of_split(name, split)
        if not 0 <= number < len(variations):
            raise InputError(f"ScienceWorld has {len(variations)} {split} games of {name!r}: ask for fewer tasks")
        self._server.load(name, variations[number], simplifications, True)
        self._gold = list(self._server.getGoldActionSequence())
        self._name, self._num_turns, self._num_things = f"{name}/{split}/{number}", 0, self._numbering.count()
        self._rng = random.Random(self._name)
        return self._look(self._turn("look around"))

    def _of_split(self, name: str, split: str) -> list[int]:
        if (name, split) not in self._variations:
            self._server.load(name, 0, "", False)
            asked = {"train": "getVariationsTrain", "valid": "getVariationsDev", "test": "getVariationsTest"}[split]
            self._variations[name, split] = list(getattr(self._server, asked)())
        return self._variations[name, split]

    def step(self, action: str) -> Seen:
        """Do something; what ScienceWorld does not know changes nothing but what it says."""
        if not action.isprintable() or len(action) > _MAX_ACTION:
            return self._seen
        if self._gold and action == self._gold[0]:
            self._gold.pop(0)
        return self._look(self._turn(action))

    def close(self) -> None:
        """It holds nothing but memory."""

    def _turn(self, action: str) -> str:
        """What ScienceWorld says to an action."""
        self._num_turns += 1
        self._chance.setSeed(zlib.crc32(f"{self._name}/{self._num_turns}".encode()))
        getattr(self._numbering, "count_$eq")(self._num_things)
        said = self._server.step(action)
        self._num_things = self._numbering.count()
        return said

    def _look(self, said: str) -> Seen:
        state = state_text(said, self._server.freeActionLook(), self._server.freeActionInventory())
        expert, asked = (*self._gold, "wait1")[0], " ".join(self._server.getTaskDescription().split())
        self._seen = Seen(state, self._some_actions(), expert, self._outcome(), asked)
        return self._seen

    def _some_actions(self) -> tuple[str, ...]:
        """A few of each kind, of the hundreds that would be accepted."""
        by_template: dict[int, list[str]] = {}
        for one in json.loads(self._server.getValidActionObjectCombinationsJSON())["validActions"]:
            by_template.setdefault(one["template_id"], []).append(one["action"])
        kinds = (self._rng.sample(some, min(_SHOWN_PER_TEMPLATE, len(some))) for some in by_template.values())
        return tuple(action for some in kinds for action in some)

    def _outcome(self) -> Outcome:
        score = self._server.getScore()
        if score >= _WON:
            return "success"
        return "failure" if score < 0 or self._server.getCompleted() else "continue"
