"""Events that trigger deployments, and claims that ensure each event is handled once even if delivered twice."""

import json
from collections.abc import Mapping

from prefect.events import emit_event

from infra.context import blobs

TRANSITIONS_COMMITTED = "dreamgym.transitions.committed"
POLICY_PROMOTED = "dreamgym.policy.promoted"
CALIBRATION_ALARM = "dreamgym.calibration.alarm"


def announce(event: str, subject: str, payload: Mapping[str, str | int | float]) -> None:
    """Emit an event to Prefect.

    Args:
        event: One of the names above.
        subject: Subject of the event: digest of the logs, digest of a policy, or id of a run.
        payload: Facts for the receivers.
    """
    emit_event(event, resource={"prefect.resource.id": f"dreamgym.{subject}"}, payload=dict(payload))


def claim(event: str, subject: str, by: str) -> bool:
    """Return True if this flow run may handle an event. The first claim wins for good, and repeating it returns True.

    Prefect may deliver an event twice, because it remembers deliveries only in memory.
    """
    key, content = f"events/{event}/{subject.replace('/', '-')}.json", json.dumps({"by": by}).encode()
    return blobs().create(key, content) or blobs().read(key) == content
