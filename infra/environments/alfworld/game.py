"""ALFWorld games, one after another in a worker process, because memory grows with each.

Only this file and once.py import alfworld and TextWorld's PDDL engine.
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
    """Player of ALFWorld's games, with ALFWorld's hand-coded expert, which sees what the agent sees."""

    def __init__(self) -> None:
        """Set up the engine; no game is loaded yet."""
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
        """Take an action. ALFWorld answers `Nothing happens.` to an action that it does not accept."""
        self._num_steps += 1
        self._seed()
        state, _, _ = self._game.step(action)
        return self._seen(state)

    def _seed(self) -> None:
        """Seed the process's random generator, so that the expert draws the same at the same step of a game.

        The games of a process share this generator.
        """
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
        """Targets of the game, as its expert has them."""
        return self._game._handcoded_expert.task_params


def _held(facts: list[Any]) -> str:
    """Return the thing in the agent's hands; empty if there is none."""
    return next((fact.arguments[1].name for fact in facts if fact.name == "holds"), "")
