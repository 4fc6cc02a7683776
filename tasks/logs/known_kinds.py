"""Kinds of logs that are known by name: our own, and those of other packages."""

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from schemas.errors import DataError
from tasks.logs.coding_agents import claude_code, codex, gemini_cli, openhands, openhands_sdk, swe_agent
from tasks.logs.generic import completions, exchanges, message_rows, steps
from tasks.logs.log_kind import LogKind
from tasks.logs.messages import messages_in
from tasks.logs.platforms import (
    braintrust,
    datadog,
    langfuse,
    langfuse_tables,
    langgraph,
    langsmith,
    mlflow,
    openai_agents,
    opik,
    weave,
)
from tasks.logs.recordings import atif, browser_use, mind2web, react, smolagents, verifiers, webshop
from tasks.logs.tracers import jaeger, otel_logs, otel_spans

GROUP = "dreamgym.log_kinds"
TRANSITIONS, CHAT = "transitions", "chat"
_OURS: dict[str, LogKind] = {
    "langfuse-tables": langfuse_tables,  # these first: spans are known by nothing but the name of their trace's id
    "opik": opik,
    "weave": weave,
    "jaeger": jaeger,
    "otel-logs": otel_logs,  # of which some look like spans
    "otel": otel_spans,
    "mlflow": mlflow,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "langgraph": langgraph,
    "openai-agents": openai_agents,
    "braintrust": braintrust,
    "datadog": datadog,
    "gemini-cli": gemini_cli,  # before Claude Code, whose lines name their session alike
    "claude-code": claude_code,
    "codex": codex,
    "openhands": openhands,
    "openhands-sdk": openhands_sdk,
    "atif": atif,
    "swe-agent": swe_agent,
    "verifiers": verifiers,
    "browser-use": browser_use,
    "mind2web": mind2web,
    "webshop": webshop,
    "smolagents": smolagents,
    "exchanges": exchanges,
    "completions": completions,
    "steps": steps,
    "message-rows": message_rows,
    "react": react,
}
_TITLES = {TRANSITIONS: "Trajectories of transitions", CHAT: "Chats"}
_AFTER_CHATS = ("completions", "steps", "message-rows", "react")
"""Kinds of records that are no chats: a step may also hold the agent's messages, and a chat its text."""
_ROW = ("trajectory_id", "turn", "next_state")
"""Columns by which a record is recognised as a row of logged transitions."""


@cache
def known_kinds() -> dict[str, LogKind]:
    """Return all kinds by name, in the order in which a record is compared with them; other packages' come first."""
    return {**{point.name: point.load() for point in entry_points(group=GROUP)}, **_OURS}


def kind_of_record(record: dict[str, Any], messages_at: str) -> str:
    """Return the name of a record's kind; empty if it is of none.

    Args:
        record: Record of a log.
        messages_at: Path of messages; empty: the usual ones.
    """
    if all(name in record for name in _ROW):
        return TRANSITIONS
    recognised = next((name for name, kind in known_kinds().items() if kind.recognises(record)), "")
    is_chat = recognised in ("", *_AFTER_CHATS) and messages_in(record, messages_at) is not None
    return CHAT if is_chat else recognised


def title_of(kind: str) -> str:
    """Return the name of a kind in words."""
    return _TITLES.get(kind) or known_kinds()[kind].TITLE


def spans_files(kind: str) -> bool:
    """Return whether the parts of an episode of a kind may be in several files."""
    return kind not in _TITLES and known_kinds()[kind].SPANS_FILES


def require_kind(name: str) -> None:
    """Check that a mapping's format is known.

    Raises:
        DataError: it is not.
    """
    known = [*_TITLES, *known_kinds()]
    if name and name not in known:
        raise DataError(f"format {name!r} of the mapping is not known: there are {', '.join(known)}")
