"""Panels of test tasks: each judgement takes the next panel of its environment, exactly once.

Panel n of an environment belongs to the judgement that creates `panels/<environment>/<n>.json`; the store lets only one
succeed. Repeating a judgement returns the same panel. Where an environment generates unlimited tasks, every panel has
its own tasks; where it has a fixed set, the number says how often that set was used before.
"""

import json

from infra.storage.blobs import Blobs

_FOLDER = "panels"


def take_panel(blobs: Blobs, environment: str, judgement: str) -> int:
    """Return the panel number of a judgement, counted from 0.

    Args:
        blobs: Store of the panel assignments.
        environment: Digest of the environment whose test tasks are used.
        judgement: Identifier of the judgement: the run's id and the policy.
    """
    noted = f"{_FOLDER}/{environment}/by/{judgement.replace('/', '-')}.json"
    if blobs.holds(noted):
        return int(json.loads(blobs.read(noted)))
    number, content = num_taken(blobs, environment), json.dumps({"judgement": judgement}).encode()
    while not blobs.create(_key(environment, number), content):
        number += 1
    blobs.write(noted, json.dumps(number).encode())
    return number


def num_taken(blobs: Blobs, environment: str) -> int:
    """Return the number of panels of an environment that are already taken."""
    return len(blobs.keys(f"{_FOLDER}/{environment}/0"))


def _key(environment: str, number: int) -> str:
    return f"{_FOLDER}/{environment}/{number:08d}.json"
