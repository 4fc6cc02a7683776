"""Tree of a trace's spans: the agents, tools and checks that a span is within."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_ENCLOSING = frozenset(
    "agent invoke_agent tool execute_tool function ai.toolcall guardrail evaluator".split()  # as conventions name them
)


@dataclass(frozen=True, slots=True)
class Span:
    """Span of a trace, without its content."""

    id: str
    parent: str
    """Empty: it is a root."""
    kind: str
    """Its subject, as its convention says: an agent, a tool, a call of a model; empty: it is not known."""

    @property
    def encloses(self) -> bool:
        """Whether what is within it belongs to it rather than to what it is within: a sub-agent, a tool, a guardrail."""
        return self.kind.lower() in _ENCLOSING


class SpanTree:
    """Spans of a trace by id."""

    def __init__(self, spans: Iterable[Span]) -> None:
        """Create a tree; a span whose parent is not there counts as a root."""
        self._spans = {one.id: one for one in spans if one.id}

    def within(self, id: str) -> tuple[str, ...]:
        """Return the ids of the enclosing spans from a span to its root, the outermost first; itself, if it encloses."""
        return tuple(one.id for one in reversed(self._way_up(id)) if one.encloses)

    def depth(self, id: str) -> int:
        """Return the number of spans above a span."""
        return max(len(self._way_up(id)) - 1, 0)

    def _way_up(self, id: str) -> list[Span]:
        way = dict[str, Span]()
        while id in self._spans and id not in way:
            way[id] = self._spans[id]
            id = way[id].parent
        return list(way.values())


def span_of(id: Any, parent: Any, kind: Any) -> Span:
    """Return a span of values that may be missing."""
    return Span(str(id or ""), str(parent or ""), str(kind or ""))
