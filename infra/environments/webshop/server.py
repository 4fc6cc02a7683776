"""HTTP client of a WebShop server, in the protocol of AgentGym's agentenv-webshop.

Its requests are create, reset, step and available_actions.
"""

from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter

from schemas.errors import EnvironmentUnavailable

_TIMEOUT_S = 60.0
_NUM_CONNECTS = 3
"""Maximum number of retries of a connection; a request is never sent twice, since a step cannot be taken back."""
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Page:
    """Page that the shop shows."""

    text: str
    """Text of the page, in parts divided by [SEP]."""
    clickables: tuple[str, ...]
    has_search_bar: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Page after an action."""

    page: Page
    score: float
    """Score of the purchase from 0 to 1; 0 before it."""
    done: bool


class _Step(BaseModel):
    state: str
    reward: float
    done: bool


class _Actions(BaseModel):
    has_search_bar: bool
    clickables: list[str]


class WebshopServer:
    """Client of a WebShop server with sessions, each of which is at one page."""

    def __init__(self, url: str) -> None:
        """Prepare a client for the server at an address, without any request yet."""
        self._url = url
        self._client = httpx.Client(
            base_url=url, timeout=_TIMEOUT_S, transport=httpx.HTTPTransport(retries=_NUM_CONNECTS)
        )

    def create(self) -> int:
        """Open a new session and return its number."""
        return self._asked(int, "POST", "/create")

    def reset(self, session: int, goal: int) -> Page:
        """Begin a session anew with the goal of this number."""
        text, _ = self._asked(tuple[str, Any], "POST", "/reset", json={"env_idx": session, "session_id": goal})
        return self._page(session, text)

    def step(self, session: int, action: str) -> Answer:
        """Click or search, and return the answer."""
        step = self._asked(_Step, "POST", "/step", json={"env_idx": session, "action": action})
        return Answer(self._page(session, step.state), step.reward, step.done)

    def _page(self, session: int, text: str) -> Page:
        actions = self._asked(_Actions, "GET", "/available_actions", params={"env_idx": session})
        return Page(text, tuple(actions.clickables), actions.has_search_bar)

    def _asked(self, kind: type[_Kind], verb: str, path: str, **what: Any) -> _Kind:
        """Return the server's answer to a request.

        Raises:
            EnvironmentUnavailable: If there is no answer, or one that does not follow the protocol.
        """
        try:
            response = self._client.request(verb, path, **what).raise_for_status()
            return TypeAdapter(kind).validate_json(response.content)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: not text, or another answer
            raise EnvironmentUnavailable(
                f"the WebShop server at {self._url} did not answer {verb} {path} as AgentGym's agentenv-webshop does "
                f"({type(error).__name__}: {error}): is it up, and is DREAMGYM_ENVIRONMENT_URL its address?"
            ) from error
