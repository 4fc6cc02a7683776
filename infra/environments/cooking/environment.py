"""TextWorld's cooking games as a vectorised environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from textworld.generator.game import Game, GameProgression
from textworld.generator.inform7 import Inform7Game

from infra.environments.cooking.expert import APPLIANCE_FOR, VERB_FOR, Ingredient, next_action
from infra.environments.cooking.games import make_game
from infra.environments.cooking.view import DIRECTIONS, FactIndex, gone_things, visible_lines
from schemas.records import AgentTask, Failure, Step
from schemas.state_text import lines_of, text_of

_CHANGES_NOTHING = ("examine ", "look", "inventory")
_INSTRUCTION = "recipe: "


@dataclass
class _Episode:
    game: Game
    progression: GameProgression
    lines: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commands = Inform7Game(self.game)
        self.look()

    def look(self) -> None:
        """Add what can be seen now to the remembered state."""
        self.facts = FactIndex(self.game, self.progression.state.facts)
        self.lines |= visible_lines(self.facts, self.lines)
        for thing in gone_things(self.facts, self.lines):
            del self.lines[thing]

    @property
    def state(self) -> str:
        return text_of(self.lines)

    @property
    def ingredients(self) -> list[Ingredient]:
        return [Ingredient(*wanted) for wanted in self.game.metadata["ingredients"]]


class CookingEnvironment:
    """TextWorld's cooking games as abstract textual states (the paper's S, section 4.1)."""

    def __init__(self, families: Mapping[str, Mapping[str, int | bool]]) -> None:
        """Create an environment with several families of games.

        Args:
            families: Settings of TextWorld's tw-cooking by family name, in the order in which tasks are dealt.
        """
        self._families = {name: tuple(sorted(settings.items())) for name, settings in families.items()}
        self._episodes: dict[int, _Episode] = {}

    def tasks(self, split: str, num_tasks: int, first_seed: int = 0) -> list[AgentTask]:
        """Return tasks of a split, dealt to the families in turn."""
        names = list(self._families)
        return [self._task(split, names[i % len(names)], first_seed + i // len(names)) for i in range(num_tasks)]

    def _task(self, split: str, family: str, seed: int) -> AgentTask:
        wanted = self._game(split, family, seed).metadata["ingredients"]
        instruction = _INSTRUCTION + "; ".join(" ".join(ingredient) for ingredient in wanted)
        return AgentTask(f"{family}/{split}/{seed}", instruction, split, family, seed)

    def _game(self, split: str, family: str, seed: int) -> Game:
        return make_game(split, seed, self._families[family])

    def reset(self, tasks: Mapping[int, AgentTask]) -> dict[int, str]:
        """Begin a game in each slot, and return the first states."""
        for slot, task in tasks.items():
            self._episodes[slot] = self._begin(task)
        return {slot: self._episodes[slot].state for slot in tasks}

    def _begin(self, task: AgentTask) -> _Episode:
        game = self._game(task.split, task.family, task.seed)
        return _Episode(game, GameProgression(game))

    def step(self, actions: Mapping[int, str]) -> dict[int, Step]:
        """Play one command in each slot. A command that TextWorld does not accept changes nothing.

        An error inside TextWorld fails only its own episode.
        """
        return {slot: self._play_or_fail(self._episodes[slot], action) for slot, action in actions.items()}

    def _play_or_fail(self, episode: _Episode, action: str) -> Step:
        try:
            return self._play(episode, action)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return Step(episode.state, 0.0, done=True, success=False, reasoning=said, failure=Failure.ENVIRONMENT)

    @staticmethod
    def _play(episode: _Episode, action: str) -> Step:
        game = episode.progression
        valid = dict(
            zip(episode.commands.gen_commands_from_actions(game.valid_actions), game.valid_actions, strict=True)
        )
        if action in valid and not action.startswith(_CHANGES_NOTHING):
            game.update(valid[action])
            episode.look()
        won, lost = game.completed, game.failed
        return Step(episode.state, float(won), done=won or lost, success=won)

    def expert(self, slot: int) -> str:
        """Return the next action of a player who knows where everything is."""
        episode = self._episodes[slot]
        return next_action(episode.facts, episode.ingredients)

    def admissible_actions(self, slot: int) -> list[str]:
        """Return the commands that TextWorld accepts now and that change the game."""
        episode = self._episodes[slot]
        commands = episode.commands.gen_commands_from_actions(episode.progression.valid_actions)
        return sorted({command for command in commands if not command.startswith(_CHANGES_NOTHING)})

    def near_misses(self, slot: int) -> list[str]:
        """Return well-formed commands about what was seen, and about mixtures of two names.

        Most are refused now.
        """
        episode = self._episodes[slot]
        kinds = episode.facts.types
        seen = {word for text in episode.lines.items() for word in (text[0], *text[1].split())}
        places = sorted(name for name, kind in kinds.items() if kind in ("s", "c") and name in seen)
        things = sorted(name for name, kind in kinds.items() if kind in ("o", "f") and name in episode.lines)
        mixed = [f"{one.split()[0]} {other.split()[-1]}" for one, other in pairwise(things)]
        things += [name for name in mixed if name not in things]
        takes = [f"take {thing} from {place}" for thing in things for place in places]
        cooks = [f"cook {thing} with {tool}" for thing in things for tool in APPLIANCE_FOR.values()]
        cuts = [f"{verb} {thing} with knife" for thing in things for verb in VERB_FOR.values()]
        moves = [f"go {direction}" for direction in DIRECTIONS]
        return takes + cooks + cuts + moves + [f"eat {thing}" for thing in things] + ["prepare meal", "eat meal"]

    def names(self, task: AgentTask) -> list[str]:
        """Return the names of the foods in a game, which may be replaced because no rule depends on them."""
        infos = self._game(task.split, task.family, task.seed).infos.values()
        return sorted(info.name for info in infos if info.type == "f" and info.name)

    def task_error(self, task: AgentTask) -> str | None:
        """Return why a task is no cooking task of these families, or could not be solved if generated."""
        return _generated_task_error(task) if task.generated else self._own_task_error(task)

    def _own_task_error(self, task: AgentTask) -> str | None:
        if task.family not in self._families:
            return f"family {task.family!r} is not in the recipe"
        own = self._task(task.split, task.family, task.seed)
        if task.instruction != own.instruction:
            return f"seed {task.seed} of family {task.family!r} has another instruction"
        if task.initial_state != self._begin(task).state:
            return f"seed {task.seed} of family {task.family!r} starts in another state"
        return None


def _generated_task_error(task: AgentTask) -> str | None:
    try:
        lines = lines_of(task.initial_state)
    except ValueError as error:
        return str(error)
    if not task.instruction.startswith(_INSTRUCTION) or "you" not in lines:
        return "no recipe, or nobody is there"
    for wanted in task.instruction.removeprefix(_INSTRUCTION).split("; "):
        if problem := _ingredient_error(wanted, lines):
            return problem
    return None


def _ingredient_error(wanted: str, lines: dict[str, str]) -> str | None:
    name, _, preparation = wanted.rpartition(" ")
    name, _, cooking = name.rpartition(" ")
    if cooking not in (*APPLIANCE_FOR, "raw") or preparation not in (*VERB_FOR, "uncut"):
        return f"no such preparation: {cooking} {preparation}"
    if "raw" not in lines.get(name, "") and "uncooked" not in lines.get(name, ""):
        return f"nothing to cook called {name!r}"
    if preparation in VERB_FOR and ("knife" not in lines or "uncut" not in lines[name]):
        return f"{name!r} cannot be cut"
    appliance = APPLIANCE_FOR.get(cooking)
    if appliance and appliance not in lines and appliance not in " ".join(lines.values()).split():
        return f"nothing to get it {cooking} with"
    return None
