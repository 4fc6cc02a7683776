"""Key of a run: the reasons to start one, and the difference of two keys in words."""

from collections.abc import Iterator, Mapping

from schemas.recipes.digests import changed_fields
from schemas.recipes.recipe import Recipe, flat_fields
from schemas.runs import RunKey
from tasks.backbones.find_backbone import folder_digest
from tasks.logs.sources.files import log_files
from tasks.running.cache_key import code_and_packages
from tasks.running.device import number_settings
from tasks.running.pins import pin_encoder

_LOGS = "logs/"
_MAX_NAMED = 3


def run_key(recipe: Recipe) -> RunKey:
    """Return everything that decides the result of a run, except what earlier runs left behind.

    Raises:
        DataError: there is no log at the recipe's path.
        InputError: the folder of a model does not exist.
        IntegrityError: a shipped backbone does not match its digest.
    """
    code, packages = code_and_packages("flows.loop.cycle", [recipe])
    named = {"backbone": folder_digest(recipe.backbone), "encoder": pin_encoder(recipe.retrieval).revision or ""}
    logs = {f"{_LOGS}{name}": sha256 for name, sha256 in log_files(recipe.ingest.path).items()}
    fields = flat_fields(changed_fields(recipe))
    for words in ("description", "gpus", "duration"):
        fields.pop(words, None)
    return RunKey(recipe=fields, data={**named, **logs}, code=code, packages=packages, settings=number_settings())


def differences(earlier: RunKey, now: RunKey) -> list[str]:
    """Return the reasons to run again, one sentence each; empty if there are none."""
    return [
        *_log_differences(earlier.data, now.data),
        *_of_kind("recipe", earlier.recipe, now.recipe),
        *_of_kind("package", earlier.packages, now.packages),
        *_of_kind("setting", earlier.settings, now.settings),
        *_named("code changed in", [name for name, _, _ in _different(earlier.code, now.code)]),
    ]


def _log_differences(earlier: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    """Yield new, changed and missing files; the folder of a model counts as a file."""
    changes = list(_different(earlier, now))
    yield from _named("new:", [name for name, before, _ in changes if not before])
    yield from _named("changed:", [name for name, before, after in changes if before and after])
    yield from _named("gone:", [name for name, _, after in changes if not after])


def _of_kind(kind: str, earlier: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    for name, before, after in _different(earlier, now):
        yield f"{kind} {name}: {_shown(before)} -> {_shown(after)}"


def _different(earlier: Mapping[str, object], now: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    for name in sorted({*earlier, *now}):
        if (before := earlier.get(name)) != (after := now.get(name)):
            yield name, before, after


def _shown(value: object) -> str:
    return "default" if value is None else str(value)


def _named(what: str, names: list[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
        yield f"{what} {', '.join(names[:_MAX_NAMED])}{more}"
