"""The HTTP protocol of a WebShop server, as AgentGym's agentenv-webshop serves it: create, reset, step, available_actions."""

from dataclasses import dataclass
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, TypeAdapter

from schemas.errors import EnvironmentUnavailable

_TIMEOUT_S = 60.0
_NUM_CONNECTS = 3
"""Tries to connect; what was sent is never sent twice, since a step cannot be taken back."""
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Page:
    """What the shop shows."""

    text: str
    """Its parts are divided by [SEP]."""
    clickables: tuple[str, ...]
    has_search_bar: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """A page after an action."""

    page: Page
    score: float
    """How well what was bought fits, from 0 to 1; 0 before."""
    done: bool


class _Step(BaseModel):
    state: str
    reward: float
    done: bool


class _Actions(BaseModel):
    has_search_bar: bool
    clickables: list[str]


class WebshopServer:
    """A WebShop server with sessions, each of which is at one page."""

    def __init__(self, url: str) -> None:
        """The server at an address; nothing is asked of it yet."""
        self._url = url
        self._client = httpx.Client(
            base_url=url, timeout=_TIMEOUT_S, transport=httpx.HTTPTransport(retries=_NUM_CONNECTS)
        )

    def create(self) -> int:
        """A new session."""
        return self._asked(int, "POST", "/create")

    def reset(self, session: int, goal: int) -> Page:
        """Begin with the goal of this number."""
        text, _ = self._asked(tuple[str, Any], "POST", "/reset", json={"env_idx": session, "session_id": goal})
        return self._page(session, text)

    def step(self, session: int, action: str) -> Answer:
        """Click or search."""
        step = self._asked(_Step, "POST", "/step", json={"env_idx": session, "action": action})
        return Answer(self._page(session, step.state), step.reward, step.done)

    def _page(self, session: int, text: str) -> Page:
        actions = self._asked(_Actions, "GET", "/available_actions", params={"env_idx": session})
        return Page(text, tuple(actions.clickables), actions.has_search_bar)

    def _asked(self, kind: type[_Kind], verb: str, path: str, **what: Any) -> _Kind:
        """What the server answers.

        Raises:
            EnvironmentUnavailable: it does not, or not in this protocol.
        """
        try:
            response = self._client.request(verb, path, **what).raise_for_status()
            return TypeAdapter(kind).validate_json(response.content)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:  # ValueError: neither text nor such an answer
            raise EnvironmentUnavailable(
                f"the WebShop server at {self._url} did not answer {verb} {path} as AgentGym's agentenv-webshop does "
                f"({type(error).__name__}: {error}): is it up, and is DREAMGYM_ENVIRONMENT_URL its address?"
            ) from error
