"""Promote the policy of a finished cycle, if its gate passed."""

from typing import Any

from infra.registry import CHAMPION, REAL_CANDIDATE, Registry
from infra.settings import settings
from schemas.errors import GateRefused, InputError
from schemas.records import Reference


def promote_run(summary: dict[str, Any]) -> str:
    """Point the champion at the cycle's policy; say so in one line.

    Raises:
        InputError: the cycle was stopped before its gate.
        GateRefused: the gate said no.
    """
    gate = summary["gate"]
    if not gate:
        raise InputError(f"cycle {summary['cycle_id']} was not evaluated; run it to the end first")
    if not gate["passed"]:
        raise GateRefused(f"the gate refused {summary['cycle_id']}: {'; '.join(gate['reasons'])}")
    policy = Reference(**summary["lineage"]["dream"]["__reference__"])
    if policy.sha256 != gate["candidate"]:
        raise InputError(f"the gate of {summary['cycle_id']} judged another policy than the one in its lineage")
    registry, version = Registry(settings()), summary["versions"]["dream"]
    for alias in (CHAMPION, REAL_CANDIDATE):
        registry.point(alias, version)
    return f"champion is now version {version} ({policy.sha256[:12]}) of cycle {summary['cycle_id']}"
