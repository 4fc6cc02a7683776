"""One game of ScienceWorld after another, all of a process in one Java machine.

The only file that imports scienceworld.
"""

import random
import re
import zlib
from functools import lru_cache
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from scienceworld.constants import BASEPATH, JAR_PATH

from infra.environments.processes import Seen
from infra.environments.scienceworld.memory import Memory
from infra.environments.scienceworld.plan import Plan, about_others
from infra.environments.scienceworld.view import room_of, state_text
from infra.environments.single_games import Outcome
from schemas.errors import InputError

_MAX_ACTION = 200
"""Characters: what is longer is no action."""
_SHOWN_PER_KIND = 2
_THING = re.compile(r"\bOBJ\b")
_WON = 1.0
_JAVA_OPTIONS = ["-Xmx3g", "-XX:+UseSerialGC"]
"""A game holds 10 MB, and all that are played at once may be in one process. The serial collector takes what they need; the one
that Java takes by itself grows to its limit first, and where that is low it does nothing but tidy up."""


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
        self._name, self._num_turns, self._num_things = f"{name}/{split}/{number}", 0, self._numbering.count()
        self._rng = random.Random(self._name)
        solution, said = list(self._server.getGoldActionSequence()), self._turn("look around")
        self._memory, self._plan = Memory(), Plan(solution, room_of(said), teleports=bool(simplifications))
        return self._look(said)

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
        self._plan.take(action, self._room)
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
        look, asked = self._server.freeActionLook(), " ".join(self._server.getTaskDescription().split())
        self._room = room_of(look)
        self._memory.learn(said, look)
        state = state_text(said, look, self._server.freeActionInventory(), self._memory.lines)
        expert = self._plan.next(self._room, look)
        self._seen = Seen(state, self._some_actions(expert), expert, self._outcome(), asked, self._plan.actions)
        return self._seen

    def _some_actions(self, planned: str) -> tuple[str, ...]:
        """What is planned with other things that are here, and a few actions of each kind.

        To have ScienceWorld say which of the hundreds it would accept takes 60 ms.
        """
        kinds, things = list(self._server.getPossibleActions()), list(self._server.getPossibleObjects())
        some = (_THING.sub(lambda _: self._rng.choice(things), kind) for kind in kinds * _SHOWN_PER_KIND)
        return (*about_others(planned, things), *some)

    def _outcome(self) -> Outcome:
        score = self._server.getScore()
        if score >= _WON:
            return "success"
        return "failure" if score < 0 or self._server.getCompleted() else "continue"
