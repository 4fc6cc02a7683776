"""Proxies of the surroundings: clients get only those that they can use, and this machine is behind none.

httpx opens each proxy that is named and reads each exemption, also for a server that is behind none.
"""

import os
from importlib.util import find_spec
from ipaddress import IPv6Address

_PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def settle_proxies() -> list[str]:
    """Leave out what clients cannot use, and exempt this machine; return what was changed, a sentence each."""
    changes = [*_without_unusable_proxies(), *_without_unreadable_exemptions()]
    return [*changes, *_with_loopback_exempt()] if _named() else changes


def _named() -> list[str]:
    return [name for name in _PROXIES if os.environ.get(name)]


def _without_unusable_proxies() -> list[str]:
    unusable = [name for name in _named() if not _is_usable(os.environ[name])]
    for name in unusable:
        del os.environ[name]
    if not unusable:
        return []
    return [f"{', '.join(unusable)} is not used: proxies are http or https, or SOCKS after pip install 'httpx[socks]'"]


def _is_usable(proxy: str) -> bool:
    from httpx import InvalidURL, Proxy

    try:
        scheme = Proxy(proxy if "://" in proxy else f"http://{proxy}").url.scheme
    except (ValueError, InvalidURL):
        return False
    return not scheme.startswith("socks") or find_spec("socksio") is not None


def _without_unreadable_exemptions() -> list[str]:
    exempt = _exempt()
    unreadable = [host for host in exempt if not _is_readable(host)]
    _exempt_only([host for host in exempt if host not in unreadable])
    return [f"no_proxy is not used for {', '.join(unreadable)}: name hosts, domains or IPv4"] if unreadable else []


def _with_loopback_exempt() -> list[str]:
    exempt = _exempt()
    if "*" in exempt or set(_LOOPBACK) <= set(exempt):
        return []
    _exempt_only([*exempt, *(host for host in _LOOPBACK if host not in exempt)])
    return ["this machine is exempt from the proxies"]


def _exempt() -> list[str]:
    """Return the exemptions; httpx reads addresses of IPv6 without brackets."""
    given = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    return [host.strip().strip("[]") for host in given.split(",") if host.strip()]


def _exempt_only(hosts: list[str]) -> None:
    if hosts or _exempt():
        os.environ.update(no_proxy=",".join(hosts), NO_PROXY=",".join(hosts))


def _is_readable(host: str) -> bool:
    """Return whether httpx reads an exemption; it takes the colons of a network of IPv6 for a port."""
    from httpx import URL, InvalidURL

    try:
        URL(host if "://" in host else f"all://[{host}]" if _is_ipv6(host) else f"all://*{host}")
    except InvalidURL:
        return False
    return True


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True
