"""Panels of test tasks: each judgement takes the next one of its environment, once and for good.

Panel n of an environment is given to whoever creates `panels/<environment>/<n>.json`, which the store lets one do. Who asks
again for the same judgement gets the same panel. Where an environment makes endless tasks, every panel has tasks of its own;
where it has a fixed set, the number says how often that set was used to judge before.
"""

import json

from infra.storage.blobs import Blobs

_FOLDER = "panels"


def take_panel(blobs: Blobs, environment: str, judgement: str) -> int:
    """The number of a judgement's panel, counted from 0.

    Args:
        blobs: Where panels are noted.
        environment: Digest of the environment whose test tasks are used.
        judgement: Of whom, by whom: the run's id and the policy.
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
    """How many panels of an environment were given out."""
    return len(blobs.keys(f"{_FOLDER}/{environment}/0"))


def _key(environment: str, number: int) -> str:
    return f"{_FOLDER}/{environment}/{number:08d}.json"
