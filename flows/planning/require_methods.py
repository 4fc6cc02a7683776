"""Check the methods that a recipe names, and their options, before anything runs."""

from collections.abc import Iterator

from pydantic import ValidationError

from flows.planning.problems import did_you_mean, problem
from infra.environments.by_name import progress_of
from infra.settings import settings
from models.methods.advantages import Advantage
from models.methods.generators import Generator
from models.methods.importance import corrected_loss
from models.methods.losses import open_loss
from models.methods.method import built_in_names, method_class, open_method, strangers
from models.methods.replays import Replay
from models.methods.rewards import Reward
from schemas.errors import RecipeError
from schemas.recipes.methods import MethodRecipe, methods_in
from schemas.recipes.recipe import Recipe


def require_methods(recipe: Recipe) -> None:
    """Refuse a recipe with an unknown method, invalid options, or methods that do not go together.

    Raises:
        RecipeError: the message names each field that is wrong.
    """
    checks = (_unknown, _missing, _without_comparison, _without_what_they_read, _in_a_chat, _on_ranks)
    for check in checks:  # each trusts those before it
        if problems := list(check(recipe)):
            raise RecipeError(f"{recipe.name}: {'; '.join(problems)}")


def _unknown(recipe: Recipe) -> Iterator[str]:
    """Yield a message for each method that is not there, and for each option that is wrong."""
    for path, method in methods_in(recipe):
        yield from _problems(path, method)


def _without_comparison(recipe: Recipe) -> Iterator[str]:
    """Yield a message for each method that compares episodes where there is nothing to compare."""
    advantage, replay = recipe.rl.advantage.name, recipe.rl.replay
    compares = open_method(Advantage, recipe.rl.advantage).needs_differences
    if recipe.rl.group_size == 1 and compares:
        yield (
            f"rl.group_size = 1 leaves rl.advantage {advantage!r} nothing to compare an episode with: raise it to 2 or "
            "more, or use rl.advantage.name = 'critic' with rl.loss.name = 'ppo'"
        )
    if open_method(Replay, replay).gives_advantages and not compares:
        yield (
            f"rl.replay {replay.name!r} does not go with rl.advantage {advantage!r}, whose critic judges episodes: leave "
            "one of them out"
        )


def _without_what_they_read(recipe: Recipe) -> Iterator[str]:
    """Yield a message for each method whose environment, model or dreams do not give what it needs."""
    advantage, generator = recipe.rl.advantage, recipe.curriculum.generator
    if progress_of(recipe.environment) is None and (methods := list(_needing_progress(recipe))):
        yield (
            f"{' and '.join(methods)} needs states that tell how far they are, and those of environment "
            f"{recipe.environment.name!r} do not: use rl.reward.name = 'outcome' and rl.advantage.name = 'grpo'"
        )
    if recipe.curriculum.generator_model and open_method(Generator, generator).trains:
        yield (f"curriculum.generator {generator.name!r} trains a network here; leave curriculum.generator_model empty")
    if recipe.experience.endpoint_model and open_method(Advantage, advantage).dreamt_rounds is not None:
        yield (
            f"rl.advantage {advantage.name!r} trains the experience model as a judge, and that at the endpoint is not "
            "trained: use rl.advantage.name = 'vine'"
        )
    if recipe.dream.max_staleness and not open_loss(corrected_loss(recipe.rl.loss, recipe.engine)).corrects_staleness:
        yield ("dream.max_staleness needs a loss that corrects for it, such as rl.loss.importance_correction = 'token'")


def _in_a_chat(recipe: Recipe) -> Iterator[str]:
    """Yield a message for each method that is made of our own markers, where the policy reads a chat."""
    if recipe.policy.template == "plain":
        return
    if recipe.rl.auxiliary.name != "none":
        yield f'rl.auxiliary {recipe.rl.auxiliary.name!r} needs policy.template = "plain"'
    if recipe.start.early_experience.reflections:
        yield 'start.early_experience.reflections needs policy.template = "plain": in a chat, policy.think lets it think'
    if recipe.backbone.scratch:
        yield 'backbone.scratch makes a tokenizer without a chat template: use policy.template = "plain"'


def _on_ranks(recipe: Recipe) -> Iterator[str]:
    """Yield a message for each method that several ranks cannot train together."""
    loss, auxiliary = recipe.rl.loss, recipe.rl.auxiliary
    if settings().num_ranks == 1:
        return
    if auxiliary.name != "none" and open_loss(loss).owns_network:
        yield (
            f"rl.auxiliary {auxiliary.name!r} and the network of rl.loss {loss.name!r} do not train together on several "
            "ranks: leave one of them out, or set DREAMGYM_NUM_RANKS=1"
        )
    if open_loss(loss).copies_policy:
        yield (
            f"the network of rl.loss {loss.name!r} is a copy of the policy, which does not train on several ranks: leave "
            "the copy out, or set DREAMGYM_NUM_RANKS=1"
        )


def _needing_progress(recipe: Recipe) -> Iterator[str]:
    if open_method(Reward, recipe.rl.reward).needs_progress:
        yield f"rl.reward {recipe.rl.reward.name!r}"
    if open_method(Advantage, recipe.rl.advantage).needs_progress:
        yield f"rl.advantage {recipe.rl.advantage.name!r}"


def _problems(path: str, method: MethodRecipe) -> Iterator[str]:
    known = sorted({*built_in_names(method.port), *strangers(method.port)})
    if method.name not in known:
        yield f"{path}.name: no {method.port} {method.name!r}{did_you_mean(method.name, known)}: {', '.join(known)}"
        return
    options = method_class(method).Options
    try:
        options.model_validate(method.options)
    except ValidationError as error:
        yield from (problem(one, [options], path) for one in error.errors())


def _missing(recipe: Recipe) -> Iterator[str]:
    """Yield a message for each method that needs another one behind a port than the recipe names."""
    methods = dict(methods_in(recipe))
    named = {method.port: (path, method.name) for path, method in methods.items()}
    for path, method in methods.items():
        for port, needed in method_class(method).needs.items():
            other, name = named[port]
            if name != needed:
                yield f"{path} {method.name!r} needs {other}.name = {needed!r}, not {name!r}"
