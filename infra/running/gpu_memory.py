"""GPU memory that engines give back before a network is trained.

Training tasks need not know which engines there are, so that no change of an engine makes them train again.
"""

from collections.abc import Callable

_releases: list[Callable[[], None]] = []


def before_training(release: Callable[[], None]) -> Callable[[], None]:
    """Decorate a function that gives back GPU memory: it is called before each training."""
    _releases.append(release)
    return release


def release_gpu_memory() -> None:
    """Give back the GPU memory of all engines that may be without it."""
    for release in _releases:
        release()
