"""Whether a server is there, asked briefly: its clients would try again for minutes."""

from urllib.parse import urlsplit

import httpx

from schemas.errors import StorageError

_TIMEOUT_S = 2.0


def require_server(what: str, url: str, health: str) -> None:
    """Raise unless a server answers; an address that is no http address is not asked.

    Args:
        what: Its name, for the message.
        url: Its address, which may hold a password.
        health: Path that it answers without asking who is there.

    Raises:
        StorageError: it does not answer within two seconds.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return
    shown = f"{parts.scheme}://{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
    try:
        httpx.get(f"{shown}{health}", timeout=_TIMEOUT_S).raise_for_status()
    except httpx.HTTPError as error:
        raise StorageError(
            f"{what} at {shown} does not answer ({type(error).__name__}): is it running? `dreamgym up` starts a stack of "
            "this home"
        ) from error


def prefect_is_away(error: BaseException) -> bool:
    """Whether an error of Prefect's client says that its server is away or unwell, rather than that we asked wrongly."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, httpx.TransportError) or str(error).startswith("Failed to reach API")
