"""One ALFWorld game after another, in a process of its own: a second to load, and memory that grows with each.

The only file that imports alfworld and TextWorld's PDDL engine.
"""

from pathlib import Path
from typing import Any

from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredExpert, AlfredExpertType, AlfredInfos
from textworld.core import EnvInfos
from textworld.envs import PddlEnv

from infra.environments.processes import Seen


class AlfworldGame:
    """Plays the games of ALFWorld with its hand-coded expert beside it, which sees what the agent sees."""

    def __init__(self) -> None:
        """Nothing loaded yet."""
        infos = EnvInfos(admissible_commands=True, won=True, facts=True, extras=["gamefile", "expert_plan"])
        self._game = AlfredExpert(AlfredInfos(AlfredDemangler(PddlEnv(infos))), expert_type=AlfredExpertType.HANDCODED)

    def reset(self, which: Path) -> Seen:
        """Begin the game of a folder that holds game.tw-pddl and traj_data.json."""
        self._game.load(str(which / "game.tw-pddl"))
        return _seen(self._game.reset())

    def step(self, action: str) -> Seen:
        """Take an action; `Nothing happens.` is the answer to what ALFWorld does not accept."""
        state, _, _ = self._game.step(action)
        return _seen(state)

    def close(self) -> None:
        """End the game."""
        self._game.close()


def _seen(state: Any) -> Seen:
    outcome = "success" if state["won"] else "continue"
    return Seen(state.feedback, tuple(state["admissible_commands"]), state["extra.expert_plan"][0], outcome)
