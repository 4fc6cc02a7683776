"""Eight processes promote at once against the same champion; one of them rolls back instead."""

import multiprocessing
from queue import Queue

from rich.console import Console

from infra.context import RunContext, ledger, objects, registry, set_run_context
from infra.progress.progress import Display
from infra.settings import settings
from infra.tracking.tracker import Tracker
from schemas.errors import DreamGymError
from schemas.ledger import Decision, History
from schemas.records import Reference
from tasks.judging.promote import promote, roll_back
from tests.faults.home import open_doors_on, own_home
from tests.faults.outcome import Outcome

NUM_PROCESSES = 8


def check(num_rounds: int) -> Outcome:
    """Run `num_rounds` rounds, each begun by all processes together."""
    outcome = Outcome("8 promotions and rollbacks at once", "one winner per fence; ledger and alias agree")
    with own_home() as home:
        _begin("main")
        context = multiprocessing.get_context("spawn")
        start, told = context.Barrier(NUM_PROCESSES + 1), context.Queue()
        workers = [
            context.Process(target=_compete, args=(home, number, num_rounds, start, told))
            for number in range(NUM_PROCESSES)
        ]
        for worker in workers:
            worker.start()
        for _ in range(num_rounds):
            before = len(ledger().history().entries)
            start.wait()
            winners = [who for who in (told.get(timeout=300) for _ in workers) if who]
            outcome.tried(*_problems(before, winners))
            start.wait()
        for worker in workers:
            worker.join()
    return outcome


def _problems(before: int, winners: list[str]) -> list[str]:
    """Return the mismatches between the reported winners, the ledger's entries and the registry's champion."""
    history = ledger().history()
    written = [entry.by for entry in history.entries[before:]]
    problems = [] if sorted(written) == sorted(winners) else [f"told {winners}, written {written}"]
    problems += [f"{entry.by} overtook" for number, entry in enumerate(history.entries) if _overtook(history, number)]
    champion, shown = _digest(history.champion), _digest(registry().behind("champion"))
    return problems if champion == shown else [*problems, f"ledger says {champion}, alias {shown}"]


def _overtook(history: History, number: int) -> bool:
    """Return whether an entry promoted a policy that was judged against another champion than the one it replaced.

    Two may replace the same champion in one round: the first was rolled back in between.
    """
    entry = history.entries[number]
    if entry.decision is not Decision.PROMOTED:
        return False
    gate = objects().get_json(Reference("", entry.gate, "gate"))
    return gate["champion"] != _digest(History(history.entries[:number]).champion)


def _digest(policy: Reference | None) -> str:
    return policy.sha256 if policy else ""


def _compete(home: str, number: int, num_rounds: int, start, told: "Queue[str]") -> None:
    """Promote a new policy that was judged against the present champion, or roll back, once in each round."""
    open_doors_on(home)
    _begin(f"process {number}")
    for round in range(num_rounds):
        me = f"{number}/{round}"
        champion = ledger().history().champion
        policy = objects().put_json({"weights": objects().put(me.encode(), "file").sha256}, "model")
        report = _gate(policy, champion)
        start.wait()
        try:
            roll_back(me, "a try") if number == 0 and champion else promote(policy, report, me)
            told.put(me)
        except DreamGymError:
            told.put("")
        start.wait()


def _gate(policy: Reference, champion: Reference | None) -> Reference:
    report = {
        "candidate": policy.sha256,
        "champion": _digest(champion),
        "passed": True,
        "reasons": [],
        "over_champion": None,
    }
    return objects().put_json(report, "gate")


def _begin(name: str) -> None:
    set_run_context(RunContext(name, "recipe", Tracker(settings(), name, {}), Display(Console(quiet=True))))
