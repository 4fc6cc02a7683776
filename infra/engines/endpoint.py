"""OpenAI-compatible endpoint: concurrent requests, retries, answers cached on disk, tokens counted."""

import asyncio
import hashlib
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from infra.files.durable_files import write_durably
from infra.settings import Settings
from schemas.chat import IsFine, Question, Written
from schemas.errors import EngineError, InputError

if TYPE_CHECKING:
    from openai import AsyncOpenAI  # takes a second to import, so it is imported on first use

OutcomeT = TypeVar("OutcomeT")
_RETRIES = 5
"""Number of retries per failed request; the client waits between them with exponential backoff and jitter."""


@dataclass
class Cost:
    """Number of requests and tokens sent to the endpoint; cached answers cost nothing."""

    num_requests: int = 0
    num_prompt_tokens: int = 0
    num_completion_tokens: int = 0
    num_cached: int = 0


class Endpoint:
    """Chat model served at DREAMGYM_ENDPOINT_URL; implements the port ChatModel."""

    def __init__(self, settings: Settings, model: str, spent: Callable[[Cost], None]) -> None:
        """Check the settings; no request is sent yet.

        Args:
            settings: Address of the endpoint and the maximum number of concurrent requests.
            model: Name of the model at the endpoint.
            spent: Called with the cost of each call of `answer`, including failed calls.

        Raises:
            InputError: the settings name no endpoint.
        """
        require_endpoint(settings, [model])
        self._url, self._concurrency = settings.endpoint_url, settings.endpoint_concurrency
        self._key = settings.endpoint_api_key.get_secret_value() if settings.endpoint_api_key else "none"
        self._answer_within_s = settings.endpoint_answer_within_s
        self._kept = settings.home / "endpoint-answers"
        self._model, self._spent = model, spent
        self._cost = Cost()

    def answer(self, questions: Sequence[Question], is_fine: IsFine, num_attempts: int = 1) -> list[str]:
        """Answer the questions; see ChatModel.

        Raises:
            EngineError: the endpoint refuses, or does not answer.
        """

        async def answered(client: "AsyncOpenAI", number: int, question: Question) -> str:
            return await self._answer(client, question, partial(is_fine, number), num_attempts)

        return self._counted(self._together(questions, answered))

    def write(self, questions: Sequence[Question]) -> list[Written]:
        """Return what the model writes to each question, whatever it is; the same question is asked once.

        Raises:
            EngineError: the endpoint refuses, or does not answer.
        """
        return self._counted(self._together(questions, lambda client, _, question: self._write(client, question)))

    def _counted(self, work: "Coroutine[Any, Any, OutcomeT]") -> "OutcomeT":
        """Return what comes of asking, and report its cost, also if it fails."""
        try:
            return asyncio.run(work)
        finally:
            self._spent(self._cost)
            self._cost = Cost()

    async def _together(
        self,
        questions: Sequence[Question],
        ask: "Callable[[AsyncOpenAI, int, Question], Coroutine[Any, Any, OutcomeT]]",
    ) -> "list[OutcomeT]":
        """Ask as many questions at a time as the settings allow."""
        from openai import AsyncOpenAI

        places = asyncio.Semaphore(self._concurrency)
        client = AsyncOpenAI(base_url=self._url, api_key=self._key, max_retries=_RETRIES, timeout=self._answer_within_s)

        async def in_its_place(number: int, question: Question) -> OutcomeT:
            async with places:
                return await ask(client, number, question)

        async with client:
            return await asyncio.gather(*(in_its_place(*one) for one in enumerate(questions)))

    async def _answer(
        self, client: "AsyncOpenAI", question: Question, is_fine: Callable[[str], bool], num_attempts: int
    ) -> str:
        kept = self._kept / f"{self._digest(question)}.json"
        if kept.exists():
            self._cost.num_cached += 1
            return json.loads(kept.read_text())
        text = ""
        for _ in range(num_attempts):
            text = (await self._ask(client, question)).text
            if is_fine(text):
                _keep(kept, text)
                break
        return text

    async def _write(self, client: "AsyncOpenAI", question: Question) -> Written:
        kept = self._kept / f"{self._digest(question)}.written.json"
        if kept.exists():
            self._cost.num_cached += 1
            return Written(**json.loads(kept.read_text()))
        written = await self._ask(client, question)
        _keep(kept, asdict(written))
        return written

    def _digest(self, question: Question) -> str:
        asked = asdict(question)
        if question.max_tokens is None:
            del asked["max_tokens"]
        return hashlib.sha256(json.dumps([self._url, self._model, asked]).encode()).hexdigest()

    async def _ask(self, client: "AsyncOpenAI", question: Question) -> Written:
        from openai import APITimeoutError, OpenAIError

        system: list[Any] = [{"role": "system", "content": question.system}] if question.system else []
        messages: list[Any] = [*system, {"role": "user", "content": question.user}]
        try:
            answer = await client.chat.completions.create(model=self._model, messages=messages, **_options(question))
        except APITimeoutError as error:
            raise EngineError(
                f"{self._model} at {self._url} did not answer within {self._answer_within_s:g} s: let the server limit "
                "the length of its answers, or set DREAMGYM_ENDPOINT_ANSWER_WITHIN_S. Answers that came are kept"
            ) from error
        except OpenAIError as error:
            raise EngineError(f"{self._model} at {self._url} failed: {type(error).__name__}") from error
        choices = getattr(answer, "choices", None)
        if not choices:
            raise EngineError(f"{self._model} at {self._url} answered with something else than a chat completion")
        self._count(answer.usage)
        return Written(choices[0].message.content or "", choices[0].finish_reason != "length")

    def _count(self, usage: Any) -> None:
        self._cost.num_requests += 1
        if usage is not None:
            self._cost.num_prompt_tokens += usage.prompt_tokens
            self._cost.num_completion_tokens += usage.completion_tokens


def _options(question: Question) -> dict[str, Any]:
    """Return the form of an answer, and how it is sampled."""
    form: dict[str, Any] = {"response_format": {"type": "json_object"}} if question.as_json else {}
    form |= {} if question.max_tokens is None else {"max_tokens": question.max_tokens}
    if question.temperature is None:
        return form
    return form | {"temperature": question.temperature, "top_p": question.top_p, "seed": question.seed}


def require_endpoint(settings: Settings, models: Sequence[str]) -> None:
    """Check that an endpoint is configured if any models are requested from it.

    Raises:
        InputError: the settings name no endpoint.
    """
    if models and not settings.endpoint_url:
        raise InputError(
            f"{', '.join(models)} is to be asked, and no endpoint is known: set DREAMGYM_ENDPOINT_URL to the address of an "
            "OpenAI-compatible server that has it"
        )


def _keep(file: Path, answer: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_durably(file, json.dumps(answer).encode())
