"""ScienceWorld games, one after another; all games of a process share one Java machine.

Only this file imports scienceworld.
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
"""Maximum length of an action in characters; a longer text is no action."""
_SHOWN_PER_KIND = 2
_THING = re.compile(r"\bOBJ\b")
_WON = 1.0
_JAVA_OPTIONS = ["-Xmx3g", "-XX:+UseSerialGC"]
"""Options of the Java machine.

A game needs 10 MB, and all games that are played at once may be in one process. The serial collector takes only what
they need. Java's default collector first grows to its limit, and with a low limit it spends its time collecting
garbage.
"""


@lru_cache(maxsize=1)
def _java() -> Any:
    """Return the Java machine of this process, which ends with the process."""
    port: Any = launch_gateway(classpath=JAR_PATH, cwd=BASEPATH, javaopts=_JAVA_OPTIONS, die_on_exit=True)
    return JavaGateway(gateway_parameters=GatewayParameters(auto_field=True, port=port)).jvm


def _singleton(package: Any, name: str) -> Any:
    """Return a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


class ScienceworldGame:
    """Player of games, with their solutions.

    All games of a Java machine share one random generator and one counter that numbers their things. Before its turn,
    each game sets both to what they would be if it were alone, so that it does not depend on the other games.
    """

    def __init__(self) -> None:
        """Set up the game server; no game is loaded yet."""
        java = _java()
        self._chance, self._numbering = _singleton(java.scala.util, "Random"), _singleton(java.util, "UniqueIdentifier")
        self._server = java.scienceworld.runtime.pythonapi.PythonInterface()
        self._variations: dict[tuple[str, str], list[int]] = {}

    def reset(self, which: tuple[str, str, int, str]) -> Seen:
        """Begin a game.

        Args:
            which: Name of a task, split, number in the split, and simplifications.

        Raises:
            InputError: If the split has too few games.
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
        """Take an action. One that ScienceWorld does not know changes only its answer."""
        if not action.isprintable() or len(action) > _MAX_ACTION:
            return self._seen
        self._plan.take(action, self._room)
        return self._look(self._turn(action))

    def close(self) -> None:
        """Do nothing, because the game holds only memory."""

    def _turn(self, action: str) -> str:
        """Return ScienceWorld's answer to an action."""
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
        """Return the planned action with other things that are here, and a few actions of each kind.

        Letting ScienceWorld list all accepted actions, which are hundreds, takes 60 ms.
        """
        kinds, things = list(self._server.getPossibleActions()), list(self._server.getPossibleObjects())
        some = (_THING.sub(lambda _: self._rng.choice(things), kind) for kind in kinds * _SHOWN_PER_KIND)
        return (*about_others(planned, things), *some)

    def _outcome(self) -> Outcome:
        score = self._server.getScore()
        if score >= _WON:
            return "success"
        return "failure" if score < 0 or self._server.getCompleted() else "continue"
