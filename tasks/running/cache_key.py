"""Cache key of a versioned task: everything that decides its result, part by part.

inputs    digests of references and recipe sections, and plain values, by argument
code      digests of the files that the task may run: its import closure, with the recipe's own environment and methods
packages  versions of the packages that this code imports and that change numbers
settings  settings that change numbers, for tasks that compute with networks
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.metadata import packages_distributions, version
from typing import Any, TypeVar

from pydantic import BaseModel

from infra.environments.by_name import package_of
from models.methods.method import FOLDERS, module_of
from schemas.errors import DreamGymError
from schemas.recipes.digests import digest_of
from schemas.recipes.environments import BaseEnvironment, PluginRecipe
from schemas.recipes.methods import MethodRecipe
from schemas.records import Reference
from schemas.runs import KeyParts
from tasks.running.device import number_settings
from tasks.running.import_closure import closure_of

SectionT = TypeVar("SectionT", bound=BaseModel)
_OPENS_ENVIRONMENTS = "infra/environments/by_name.py"
_PARTS_OF_AN_ENVIRONMENT = ("opened", "annotator", "listed", "progress")
_CARRYING = frozenset(
    "boto3 botocore fastapi filelock httpx ijson jinja2 lance lancedb matplotlib mlflow openai orjson pandas pandera platformdirs "
    "prefect psutil pyarrow pydantic pydantic_settings ray rich sqlalchemy starlette typer uvicorn websockets yaml".split()
)
"""Packages that transport results without changing them; their versions are tags of the MLflow run."""


def key_parts(task: str, module: str, arguments: Mapping[str, Any]) -> KeyParts:
    """Return the parts of one call's key.

    Args:
        task: Name of the task.
        module: Module that defines it.
        arguments: Arguments by name.

    Raises:
        DreamGymError: an argument has no digest.
    """
    inputs = {name: _digestible(value) for name, value in arguments.items()}
    code, packages = code_and_packages(module, arguments.values())
    computes = "torch" in packages
    return KeyParts(task, module, inputs, code, packages, number_settings() if computes else {})


def code_and_packages(module: str, arguments: Iterable[Any] = ()) -> tuple[dict[str, str], dict[str, str]]:
    """Return digests of a module's closure by file, and versions of the packages in it that change numbers.

    The closure includes the packages of the environments that recipe sections among the arguments name if it opens
    environments, and the methods that they name if it opens their ports.
    """
    closure, sections = closure_of([module]), list(arguments)
    has_environments = _OPENS_ENVIRONMENTS in closure.code
    opened = list(_modules_of(_sections_in(sections, BaseEnvironment))) if has_environments else []
    opened += [module_of(one) for one in _sections_in(sections, MethodRecipe) if _port_file(one) in closure.code]
    if opened:
        closure = closure_of([module, *opened], {_top(one) for one in opened} - {"infra", "models"})
    return closure.code, versions_of(closure.packages - _CARRYING)


def versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages, by sorted name; the standard library has none."""
    return {name: found for name in sorted(packages) if (found := _version(name))}


def _modules_of(environments: Iterable[BaseEnvironment]) -> Iterator[str]:
    for one in environments:
        package = package_of(one)
        yield from (
            [package] if isinstance(one, PluginRecipe) else (f"{package}.{part}" for part in _PARTS_OF_AN_ENVIRONMENT)
        )


def _port_file(method: MethodRecipe) -> str:
    return f"{FOLDERS[method.port].replace('.', '/')}/__init__.py"


def _top(module: str) -> str:
    return module.partition(".")[0]


def _sections_in(values: Iterable[Any], kind: type[SectionT]) -> list[SectionT]:
    """Return the sections of a kind among arguments, also those within other sections."""
    found: list[SectionT] = []
    for value in values:
        if isinstance(value, kind):
            found.append(value)
        elif isinstance(value, BaseModel):
            found += _sections_in((getattr(value, name) for name in type(value).model_fields), kind)
    return found


@lru_cache
def _version(package: str) -> str:
    """Return the version of a package's distribution; empty if there is none, as for the standard library."""
    distributions = _distributions().get(package)
    return version(distributions[0]) if distributions else ""


@lru_cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


def _digestible(value: Any) -> Any:
    if isinstance(value, Reference):
        return value.sha256
    if isinstance(value, BaseModel):
        return digest_of(value)
    if isinstance(value, dict):
        return {str(key): _digestible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_digestible(item) for item in value]
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    raise DreamGymError(f"a versioned task was given a {type(value).__name__}, which has no digest: pass a reference")
