"""One ALFWorld game after another, in a process of its own: memory grows with each.

The only file beside once.py that imports alfworld and TextWorld's PDDL engine.
"""

import random
from pathlib import Path
from typing import Any

from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredExpert, AlfredExpertType, AlfredInfos
from textworld.core import EnvInfos
from textworld.envs import PddlEnv

from infra.environments.alfworld.expert import next_action
from infra.environments.alfworld.memory import Memory
from infra.environments.alfworld.once import patch_caches
from infra.environments.alfworld.view import in_order, places_to_go, state_text
from infra.environments.processes import Seen


class AlfworldGame:
    """Plays the games of ALFWorld with its hand-coded expert beside it, which sees what the agent sees."""

    def __init__(self) -> None:
        """Nothing loaded yet."""
        patch_caches()
        infos = EnvInfos(admissible_commands=True, won=True, facts=True, extras=["gamefile", "expert_plan"])
        self._game = AlfredExpert(AlfredInfos(AlfredDemangler(PddlEnv(infos))), expert_type=AlfredExpertType.HANDCODED)
        self._name, self._num_steps = "", 0
        self._memory = Memory(())

    def reset(self, which: Path) -> Seen:
        """Begin the game of a folder that holds game.tw-pddl and traj_data.json."""
        self._name, self._num_steps = f"{which.parent.name}/{which.name}", 0
        self._game.load(str(which / "game.tw-pddl"))
        self._seed()
        state = self._game.reset()
        self._memory = Memory(places_to_go(in_order(state["admissible_commands"])))
        return self._seen(state)

    def step(self, action: str) -> Seen:
        """Take an action; `Nothing happens.` is the answer to what ALFWorld does not accept."""
        self._num_steps += 1
        self._seed()
        state, _, _ = self._game.step(action)
        return self._seen(state)

    def _seed(self) -> None:
        """The expert draws from the process's own source of chance, which games share: each draws the same in each step."""
        random.seed(f"{self._name}/{self._num_steps}")

    def close(self) -> None:
        """End the game."""
        self._game.close()

    def _seen(self, state: Any) -> Seen:
        self._memory.hear(state.feedback)
        accepted, held = tuple(state["admissible_commands"]), _held(state["facts"])
        said = state_text(state.feedback, accepted, held, self._memory.lines)
        planned = next_action(state["extra.expert_plan"][0], in_order(accepted), held, self._asked)
        return Seen(said, accepted, planned, "success" if state["won"] else "continue")

    @property
    def _asked(self) -> dict[str, Any]:
        """What the game asks for, as its expert was told."""
        return self._game._handcoded_expert.task_params


def _held(facts: list[Any]) -> str:
    """What is in the agent's hands; empty if nothing is."""
    return next((fact.arguments[1].name for fact in facts if fact.name == "holds"), "")
