"""The READMEs: short at the front, links that lead somewhere, commands that the real parser takes."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from flows.command_line import app

ROOT = Path(__file__).parents[2]
READMES = [
    ROOT / "README.md",
    *(
        file
        for room in ("flows", "tasks", "models", "infra", "schemas", "tests")
        for file in (ROOT / room).rglob("README.md")
    ),
]
COMMAND = re.compile(
    r"^ {4}(?:\.venv/bin/)?dreamgym (.+?)(?:\s+#.*)?$|`(?:\.venv/bin/)?dreamgym ([^`]+)`", re.MULTILINE
)
COMMANDS = vars(get_command(app))["commands"]
TARGET = re.compile(r"^ {4}make (\w+)|`make ([a-z]+)", re.MULTILINE)


def commands() -> Iterator[str]:
    for file in READMES:
        in_one_line = re.sub(r"\\\n\s*", "", file.read_text())
        for block, inline in COMMAND.findall(in_one_line):
            yield (block or inline).replace("\\|", "|")
    for command in COMMANDS.values():
        yield from (line.removeprefix("dreamgym ") for line in (command.epilog or "").splitlines() if " " in line)


def test_the_front_page_is_short():
    assert len((ROOT / "README.md").read_text().split()) <= 1200


@pytest.mark.parametrize("file", READMES, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_somewhere(file):
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", file.read_text()):
        path, _, heading = link.partition("#")
        target = (file.parent / path).resolve() if path else file
        assert target.exists(), link
        if heading:
            headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            assert heading in [re.sub(r"[^\w\- ]", "", one).lower().replace(" ", "-") for one in headings], link


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_commands_are_understood(command):
    optional = re.findall(r"\[(--[\w-]+)", command)
    name, *arguments = shlex.split(re.sub(r"\s*\[[^]]*\]", "", command))
    subcommand = COMMANDS[name]
    if arguments or not any(parameter.required for parameter in subcommand.params):  # else it is only named
        subcommand.make_context(name, arguments)
    assert set(optional) <= {one for known in subcommand.params for one in (*known.opts, *known.secondary_opts)}


def test_make_has_every_target_that_is_named():
    known = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = {one or other for file in READMES for one, other in TARGET.findall(file.read_text())}
    assert named <= set(known)


def test_every_command_has_json():
    without = [name for name, one in COMMANDS.items() if "--json" not in {o for p in one.params for o in p.opts}]
    assert without == []
