"""ScienceWorld's own solution of a game, followed from wherever the game stands.

The original solution opens doors that are open, uses long names for things in hand, and is lost after one other step.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_GO, _OPEN, _WAIT = "go to ", "open door to ", "wait1"
_IDLE = (_OPEN, "look around")
"""Prefixes of steps that a solution does not need, unless it waits for something: then each step passes time."""
_HELD = re.compile(r"^move (?:egg )?(?P<thing>.+?)(?: containing .+)? in inventory to (?P<place>.+)$")
_ABOUT_A_THING = re.compile(r"^(focus on |pick up |move )(.+?)( to .+)?$")
_CLOSED = "A door to the {} (that is closed)"


@dataclass(frozen=True, slots=True)
class _Step:
    room: str
    action: str


class Plan:
    """Remaining steps of a solution.

    If a later step of the same room is taken first, the plan goes on from there. Skipped steps stay skipped, as with an
    agent that forgets.
    """

    def __init__(self, solution: list[str], room: str, *, teleports: bool) -> None:
        """Set up a solution that begins in this room; with teleports, each step's room is reachable from everywhere."""
        self._left: list[_Step] = []
        self._teleports = teleports
        unneeded = () if any(action.startswith("wait") for action in solution[:-1]) else _IDLE
        for action in solution:
            if not action.startswith(unneeded):
                self._left.append(_Step(room, action))
            if action.startswith(_GO):
                room = action.removeprefix(_GO)

    @property
    def actions(self) -> tuple[str, ...]:
        """Remaining actions, in whatever rooms."""
        return tuple(_shortly(step.action) for step in self._left)

    def next(self, room: str, look: str) -> str:
        """Return the next action in a room, given a free look around."""
        self._skip_detours(room)
        if not self._left:
            return _WAIT
        step = self._left[0]
        if step.room != room and self._teleports:
            return f"teleport to {step.room}"
        place = step.action.removeprefix(_GO)
        return f"{_OPEN}{place}" if _CLOSED.format(place) in look else _unambiguously(step.action, look)

    def _skip_detours(self, room: str) -> None:
        on_foot = [step.action.startswith(_GO) for step in self._left]
        here = [i for i, step in enumerate(self._left) if step.room == room and all(on_foot[:i])]
        self._left = self._left[max(here, default=0) :]

    def take(self, action: str, room: str) -> None:
        """Record an action in a room. If it is planned there, it and all steps before it are done."""
        for i, step in enumerate(self._left):
            if step.room != room or step.action.startswith(_GO):
                return
            if action in (step.action, _shortly(step.action)):
                self._left = self._left[i + 1 :]
                return


def _unambiguously(action: str, look: str) -> str:
    """Return the action in short form, unless the thing in hand also lies around."""
    held = _HELD.match(action)
    return action if held and held["thing"] in look else _shortly(action)


def _shortly(action: str) -> str:
    held = _HELD.match(action)
    return f"move {held['thing']} to {held['place']}" if held else action


def about_others(action: str, things: Iterable[str]) -> list[str]:
    """Return the action with each of these things in place of its own; empty if it is not about a thing."""
    about = _ABOUT_A_THING.match(action)
    return [f"{about[1]}{thing}{about[3] or ''}" for thing in things] if about else []
