"""Events that deployments listen to, and the claim by which each is answered once, however often it is delivered."""

import json
from collections.abc import Mapping

from prefect.events import emit_event

from infra.context import blobs

TRANSITIONS_COMMITTED = "dreamgym.transitions.committed"
POLICY_PROMOTED = "dreamgym.policy.promoted"
CALIBRATION_ALARM = "dreamgym.calibration.alarm"


def announce(event: str, subject: str, payload: Mapping[str, str | int | float]) -> None:
    """Tell Prefect what happened.

    Args:
        event: One of the names above.
        subject: What it happened to: a table's version, a policy's digest, a cycle.
        payload: Facts for whoever listens.
    """
    emit_event(event, resource={"prefect.resource.id": f"dreamgym.{subject}"}, payload=dict(payload))


def claim(event: str, subject: str, by: str) -> bool:
    """Whether an event is this flow run's to answer: the first to ask has it for good, asked again too.

    Prefect may deliver an event twice: it remembers what it delivered in memory only.
    """
    key, content = f"events/{event}/{subject.replace('/', '-')}.json", json.dumps({"by": by}).encode()
    return blobs().create(key, content) or blobs().read(key) == content
