"""Variables of a user's surroundings that would mislead this process and those that it starts."""

import os

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def reach_loopback_directly() -> None:
    """Exempt this machine from the proxies of the surroundings: servers that are started here are behind none."""
    if not any(os.environ.get(name) or os.environ.get(name.upper()) for name in _PROXIES):
        return
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    exempt = [host.strip() for host in given.split(",") if host.strip()]
    if "*" not in exempt:
        both = ",".join(dict.fromkeys([*exempt, *_LOOPBACK]))
        os.environ.update(no_proxy=both, NO_PROXY=both)
