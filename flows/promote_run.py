"""Promote the policy of a finished cycle: judged anew, against who is champion today."""

import getpass
import socket
from typing import Any

from prefect import flow

from flows.cycle import Lineage, prove
from flows.run import closing, open_doors
from infra.cycles import save_summary
from infra.progress import Display
from schemas.errors import InputError
from schemas.recipe import Recipe
from tasks.promote import promote, roll_back
from tasks.versioned import plain, restored


def promote_run(summary: dict[str, Any], display: Display, *, again: bool = False) -> str:
    """Let the gate judge a cycle's policy on the cycle's pinned tasks, and make it champion; say so in one line.

    Raises:
        InputError: the cycle was stopped before it had a policy.
        GateRefused: the gate said no.
    """
    cycle_id = summary["cycle_id"]
    if "dream" not in summary["lineage"]:
        raise InputError(f"cycle {cycle_id} has no policy yet: dreamgym run it to the end first")
    recipe, references = Recipe.model_validate(summary["recipe"]), restored(summary["lineage"])
    tracker = open_doors(recipe, cycle_id, display)
    with closing(tracker):
        made = promotion.with_options(flow_run_name=f"promote {cycle_id}")(recipe, references)
        save_summary(summary | {"gate": plain(made.gate), "versions": summary["versions"] | made.versions})
        candidate, version = made.references["dream"], made.versions["dream"]
        if promote(candidate, made.gate["report"], person(), again=again):
            return f"champion is now version {version} ({candidate.sha256[:12]}) of cycle {cycle_id}"
    return f"version {version} ({candidate.sha256[:12]}) of cycle {cycle_id} is champion already"


@flow(name="promotion", validate_parameters=False)
def promotion(recipe: Recipe, references: dict[str, Any]) -> Lineage:
    """Evaluate and judge what a cycle made; what was evaluated before with the same code is taken over."""
    made = Lineage(references=references)
    prove(recipe, made)
    return made


def roll_back_champion(reason: str) -> str:
    """Bring back the champion before the present one; say so in one line."""
    back = roll_back(person(), reason).policy
    return f"champion is {back.sha256[:12]} again" if back else "there is no champion any more"


def person() -> str:
    """Who acts, for the ledger."""
    return f"{getpass.getuser()}@{socket.gethostname()}"
