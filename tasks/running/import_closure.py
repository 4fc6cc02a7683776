"""Code that a module may run: its import closure in the project, and the packages that this code imports.

Imports are read from the source, those within functions too, and nothing is executed. A file counts by its syntax tree
without docstrings, so that comments, documentation and formatting change no digest. Results are cached by file time.
"""

import ast
import gc
import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from schemas.recipes.digests import SECTION_MODULES

ROOT = Path(__file__).parent.parent.parent
_ROOMS = ("schemas", "models", "infra", "tasks", "flows")
_DECIDING = ("infra.environments", "infra.engines")
"""Packages of infra that can change results. The rest only transports them: stores, tracking, leases, progress."""
_CARRYING = (
    *(
        "tasks.running.versioned",
        "tasks.running.cache_key",
        "tasks.running.import_closure",
        "tasks.judging.promote",
        "tasks.data.verify_rows",
    ),
    "flows.loop.flow_page",
    *(*SECTION_MODULES, "schemas.recipes.digests", "schemas.recipes.former_fields"),
)
"""Modules that cannot change results. Recipes count by their values (schemas/recipes/digests.py), not by the code that
reads them."""

_parsing = Lock()


@dataclass(frozen=True, slots=True)
class Closure:
    """Digests of files by path, and the top-level names of the packages that they import."""

    code: dict[str, str] = field(default_factory=dict)
    packages: frozenset[str] = frozenset()


def closure_of(roots: Iterable[str], strangers: Iterable[str] = ()) -> Closure:
    """Return everything that modules import, directly or indirectly.

    Args:
        roots: Modules to start from; one without a file is left out.
        strangers: Top-level packages outside the project whose files count as well.
    """
    ours, waiting, code, packages = {*_ROOMS, *strangers}, [*roots], dict[str, str](), set[str]()
    looked_at = set[str]()
    while waiting:
        new = [one for one in _with_parents(waiting.pop()) if one not in looked_at]
        looked_at.update(new)
        for module, file in _files_of(new):
            if (path := _shown(file)) in code:
                continue
            read = _read(file, module, file.stat().st_mtime_ns)
            code[path] = read.digest
            packages |= {top for one in read.imports if (top := one.partition(".")[0]) not in ours}
            waiting += [one for one in read.imports if one.partition(".")[0] in ours and not _carries(one)]
    return Closure(dict(sorted(code.items())), frozenset(packages - sys.stdlib_module_names))


def digests_now(paths: Iterable[str]) -> dict[str, str]:
    """Return the present digests of a closure's files by path; a file that is gone is left out."""
    return {path: _read(file, "", file.stat().st_mtime_ns).digest for path in paths if (file := ROOT / path).is_file()}


def _with_parents(module: str) -> list[str]:
    """Return the names of a module and of its parent packages. In `a.b.c`, c may be a name in a.b."""
    parts = module.split(".")
    return [".".join(parts[: end + 1]) for end in range(len(parts))]


def _files_of(modules: Iterable[str]) -> list[tuple[str, Path]]:
    """Return name and file of each module that has one."""
    return [(name, file) for name in modules if (file := _file_of(name))]


def _file_of(module: str) -> Path | None:
    """Return the file of a module; a package outside the project is located without importing it."""
    top, *rest = module.split(".")
    folder = ROOT / top if top in _ROOMS else _place_of(top)
    if folder is None:
        return None
    path = folder.joinpath(*rest)
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@lru_cache
def _place_of(package: str) -> Path | None:
    """Return the path of an installed top-level module or package, without `.py`."""
    spec = sys.modules[package].__spec__ if package in sys.modules else find_spec(package)
    if spec is None or not spec.origin:
        return None
    origin = Path(spec.origin)
    return origin.parent if origin.name == "__init__.py" else origin.with_suffix("")


def _carries(module: str) -> bool:
    def within(packages: Iterable[str]) -> bool:
        return any(module == one or module.startswith(f"{one}.") for one in packages)

    return not within(_DECIDING) if module.partition(".")[0] == "infra" else within(_CARRYING)


def _shown(file: Path) -> str:
    return str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)


@dataclass(frozen=True, slots=True)
class _Source:
    digest: str
    imports: tuple[str, ...]


@cache
def _read(file: Path, module: str, written_ns: int) -> _Source:
    """Return a file's digest and its imports."""
    tree = _parsed(file.read_bytes())
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    imports = tuple(sorted(set(_imports(tree, package.split(".")))))
    digest = hashlib.sha256(ast.dump(_WithoutDocstrings().visit(tree)).encode()).hexdigest()
    return _Source(digest, imports)


def _parsed(source: bytes) -> ast.Module:
    """Parse while no garbage is collected: a finaliser may let another thread parse, which CPython 3.11 takes for an error.

    One thread at a time, or the first to end would have garbage collected while the others still parse.
    """
    with _parsing:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return ast.parse(source)
        finally:
            if was_enabled:
                gc.enable()


def _imports(tree: ast.Module, package: list[str]) -> Iterator[str]:
    """Yield imported modules, and imported names as if they were modules; the caller checks on disk if they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


class _WithoutDocstrings(ast.NodeTransformer):
    """Transformer that drops text that stands alone: docstrings of modules, classes, functions and attributes."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        """Return None for a text constant."""
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else node
