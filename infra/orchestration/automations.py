"""Automations of a Prefect server, as code: dead runs are marked crashed, a calibration alarm pauses the schedule."""

from uuid import UUID

from prefect.automations import Automation
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ChangeFlowRunState, PauseDeployment
from prefect.events.schemas.automations import EventTrigger, Posture

from infra.orchestration.announcements import CALIBRATION_ALARM

_SILENCE_S = 300
"""Seconds without a heartbeat after which a run is presumed dead. Longer than any outage of the server, because after
one it counts its own absence as silence of the runs. The state is only a presumption; writes of a run are fenced
separately."""

_SIGNS_OF_LIFE_OR_END = {
    f"prefect.flow-run.{sign}"
    for sign in (
        *("heartbeat", "Completed", "Failed", "Crashed", "Cancelled", "Cancelling"),
        *("Paused", "Suspended", "Scheduled", "AwaitingRetry"),
    )
}


def crash_zombies() -> Automation:
    """Return an automation that marks silent flow runs as crashed, which frees their concurrency slots."""
    return Automation(
        name="dreamgym: crash zombies",
        description=f"A flow run without a heartbeat for {_SILENCE_S} s is presumed dead.",
        trigger=EventTrigger(
            after={"prefect.flow-run.heartbeat"},
            expect=_SIGNS_OF_LIFE_OR_END,
            match={"prefect.resource.id": ["prefect.flow-run.*"]},  # pyright: ignore[reportArgumentType]
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=_SILENCE_S,  # pyright: ignore[reportArgumentType]
        ),
        actions=[  # pyright: ignore[reportArgumentType]
            ChangeFlowRunState(  # pyright: ignore[reportCallIssue]
                state=StateType.CRASHED, message=f"no heartbeat for {_SILENCE_S} s: presumed dead"
            )
        ],
    )


def pause_on_alarm(deployment: UUID) -> Automation:
    """Return an automation that pauses a schedule when dream and real success diverge: a person has to look first."""
    return Automation(
        name="dreamgym: pause on calibration alarm",
        description="Dream and real success differ too much; resume the schedule when you know why.",
        trigger=EventTrigger(
            expect={CALIBRATION_ALARM},
            match={"prefect.resource.id": ["dreamgym.*"]},  # pyright: ignore[reportArgumentType]
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[PauseDeployment(source="selected", deployment_id=deployment)],
    )


def install(automation: Automation) -> None:
    """Create an automation, or update the one with the same name."""
    try:
        automation.id = Automation.read(name=automation.name).id  # pyright: ignore[reportAttributeAccessIssue]
    except ValueError:
        automation.create()
    else:
        automation.update()
