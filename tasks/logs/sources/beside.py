"""Verdicts in files beside a log: of a trial of Harbor (`result.json`), of an evaluation of SWE-bench (`results.json`)."""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

_RESULTS = ("result.json", "results.json", "report.json")
_MAX_BYTES = 16_000_000
_LOGS = (".json", ".traj")
"""Suffixes of files that hold one episode, which a verdict beside them may be of."""


class VerdictsBeside:
    """Verdicts by the folder of a trial, and by the name of what was evaluated."""

    def __init__(self, files: Mapping[str, Path]) -> None:
        """Read the results among files, given by name."""
        self._by_folder, self._by_name = dict[PurePath, dict[str, Any]](), dict[str, dict[str, Any]]()
        self.read = set[str]()
        """Names of the files that hold nothing but verdicts."""
        for name, found in _results_in(files):
            reward = _reward_of_trial(found)
            by_name = {one: {"resolved": is_so} for is_so in (False, True) for one in _listed(found, resolved=is_so)}
            if reward is not None:
                self._by_folder[PurePath(name).parent] = {"task_id": found.get("task_name"), **reward}
            self._by_name |= by_name
            self.read |= {name} if by_name or reward is not None else set()

    def on(self, name: str) -> dict[str, Any]:
        """Return the fields with the verdict on the episode in a file; empty if there is none."""
        path = PurePath(name)
        if path.suffix not in _LOGS:
            return {}
        named = (self._by_name[one] for one in (path.stem, path.parent.name) if one in self._by_name)
        around = (self._by_folder[one] for one in path.parents if one in self._by_folder)
        return next(chain(named, around), {})


def _results_in(files: Mapping[str, Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, file in files.items():
        if PurePath(name).name in _RESULTS and file.stat().st_size <= _MAX_BYTES:
            try:
                found = json.loads(file.read_bytes())
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict):
                yield name, found


def _reward_of_trial(result: dict[str, Any]) -> dict[str, Any] | None:
    """Return the rewards of a trial of Harbor; None if it is none."""
    judged = result.get("verifier_result")
    rewards = judged.get("rewards") if isinstance(judged, dict) else None
    return rewards if isinstance(rewards, dict) and "trial_name" in result else None


def _listed(result: dict[str, Any], *, resolved: bool) -> Iterable[str]:
    """Return the names of what was or was not resolved in an evaluation of SWE-bench."""
    names = ("resolved_ids",) if resolved else ("unresolved_ids", "empty_patch_ids", "error_ids")
    return [str(one) for name in names if isinstance(result.get(name), list) for one in result[name]]
