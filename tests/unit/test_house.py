"""The house stays readable: small rooms, small functions, no circles, plain words."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("flows", "tasks", "models", "infra", "schemas")
MODULES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts): file
    for room in ROOMS
    for file in (ROOT / room).rglob("*.py")
} | {"dreamgym": ROOT / "dreamgym.py"}
RELATIVE = re.compile(r"(Of|Who|Whom|Whose|What|That|Which|Where)\b")
PRIVATE = re.compile(r"\b(at_work|heed(s|ed)?|told|own mistakes|refusals)\b", re.IGNORECASE)


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for file in MODULES.values():
        yield file.relative_to(ROOT), ast.parse(file.read_text())


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Those of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value.strip()


def test_a_folder_has_at_most_a_dozen_modules():
    modules = defaultdict(list)
    for file in MODULES.values():
        if file.name != "__init__.py":
            modules[file.parent.relative_to(ROOT)].append(file.name)
    assert {folder: len(names) for folder, names in modules.items() if len(names) > 12} == {}


def test_every_folder_says_what_is_in_it():
    folders = {file.parent for file in MODULES.values()} - {ROOT / "schemas", ROOT / "tasks"}
    without = [
        str(folder.relative_to(ROOT))
        for folder in folders
        if not (folder / "README.md").exists() and folder.parent.name != "environments" and folder.name != "logs"
    ]
    assert without == []


def test_functions_are_short():
    lengths = {
        f"{file}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for file, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert median(lengths.values()) <= 8
    assert quantiles(lengths.values(), n=10)[-1] <= 22
    assert {name: length for name, length in lengths.items() if length > 60} == {}


def test_rooms_import_each_other_in_one_direction():
    arrows = defaultdict(set)
    for name, file in MODULES.items():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for imported in (f"{node.module}.{alias.name}" for alias in node.names):
                    found = next((one for one in (imported, node.module) if one in MODULES), None)
                    if found and place(found) != place(name):
                        arrows[place(name)].add(place(found))
    assert circle_in(arrows) == []


def place(module: str) -> str:
    """The sub-room of a module, or the module itself at the top of a room."""
    return ".".join(module.split(".")[:2])


def circle_in(arrows: dict[str, set[str]]) -> list[str]:
    """Nodes that are left when all that nobody points to, or that point to nobody, are taken away."""
    left = set(arrows) | {end for ends in arrows.values() for end in ends}
    while True:
        targets = {end for start in left for end in arrows.get(start, set()) & left}
        inner = {one for one in left & targets if arrows.get(one, set()) & left}
        if inner == left:
            return sorted(left)
        left = inner


@pytest.mark.parametrize("pattern", [RELATIVE, PRIVATE], ids=["relative", "private"])
def test_docstrings_are_plain(pattern):
    search = pattern.match if pattern is RELATIVE else pattern.search
    found = [f"{file}:{line}: {text[:60]}" for file, tree in trees() for line, text in docstrings(tree) if search(text)]
    assert found == []


WORDS = re.compile(r"(^|_)(told|foretold|heed|heeds|at_work|ahead|doors)(_|$)")
GAMES = "infra/environments"
"""Room whose games have doors."""


def names_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names of functions, classes, arguments, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.Name():
                yield node.lineno, node.id
            case ast.Attribute():
                yield node.lineno, node.attr
            case ast.arg():
                yield node.lineno, node.arg


def test_names_are_the_fields_own():
    found = [
        f"{file}:{line}: {name}"
        for file, tree in trees()
        if not str(file).startswith(GAMES)
        for line, name in names_in(tree)
        if WORDS.search(name)
    ]
    assert found == []
