r"""Text format of an abstract state: one line `- name: value` per entity, and the changes between two states.

The paper calls for an abstract textual state without what does not matter for acting (section 4.1).
Named lines have a further use: the experience model needs to write only the lines that change, which a
small model learns far better than copying the whole state.

Example:
    state    "- you: kitchen\n- carrot: counter raw uncut"
    changes  "- carrot: held raw uncut"
"""

GONE = "gone"
"""Value of a changed line that removes the entity from the state."""


def lines_of(state: str) -> dict[str, str]:
    """Return values by name, in the order of the text.

    Raises:
        ValueError: a line is not `- name: value`, or a name appears twice.
    """
    lines: dict[str, str] = {}
    for line in filter(None, state.split("\n")):
        name, colon, value = line.removeprefix("- ").partition(": ")
        if not (line.startswith("- ") and colon and name and value):
            raise ValueError(f"not a line of a state, '- name: value' was expected: {line!r}")
        if name in lines:
            raise ValueError(f"{name!r} appears twice in one state")
        lines[name] = value
    return lines


def text_of(lines: dict[str, str]) -> str:
    """Return the state text of these lines."""
    return "\n".join(f"- {name}: {value}" for name, value in lines.items())


def state_of(text: str, name: str = "") -> str:
    """Return a text as a state: unchanged if it is one, else as one line of this name, or as numbered lines."""
    try:
        lines = lines_of(text)
    except ValueError:
        lines = {}
    if lines:
        return text_of(lines)
    said = [line.strip() for line in text.splitlines() if line.strip()] or ["nothing"]
    return text_of({name: " ".join(said)} if name else {f"line {number}": line for number, line in enumerate(said, 1)})


def is_free_text(state: str) -> bool:
    """Return whether a state is a text whose lines `state_of` numbered."""
    return state.startswith("- line 1: ") and state_of("\n".join(lines_of(state).values())) == state


def free_text(state: str) -> str:
    """Return a state without the numbers that `state_of` gave to its lines; other states as they are."""
    return "\n".join(lines_of(state).values()) if is_free_text(state) else state


def changes_between(state: str, next_state: str) -> str:
    """Return the new and changed lines of next_state, then the removed names; empty if nothing changed."""
    before, after = lines_of(state), lines_of(next_state)
    changed = {name: _escaped(value) for name, value in after.items() if before.get(name) != value}
    return text_of(changed | {name: GONE for name in before if name not in after})


def apply_changes(state: str, changes: str) -> str:
    """Return the next state: changed lines keep their place, new ones come last.

    Raises:
        ValueError: the changes are not lines of a state.
    """
    changed = lines_of(changes)
    lines = lines_of(state) | {name: _unescaped(value) for name, value in changed.items()}
    return text_of({name: value for name, value in lines.items() if changed.get(name) != GONE})


def _escaped(value: str) -> str:
    r"""Return the value of a changed line: a state may say "gone", too, which is written "\gone"."""
    return f"\\{value}" if value.lstrip("\\") == GONE else value


def _unescaped(value: str) -> str:
    return value[1:] if value != GONE and value.lstrip("\\") == GONE else value
