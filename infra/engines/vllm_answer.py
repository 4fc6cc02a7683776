"""Validation of vLLM completions, so that no NaN or infinite log-probability reaches a loss."""

from typing import Annotated

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from schemas.errors import EngineUnavailable
from schemas.sampling import Sampled, Sampling

_ROUNDING = 1e-3
"""Maximum excess of a log-probability over 0, to allow for rounding."""


class _Logprobs(BaseModel):
    token_logprobs: list[Annotated[FiniteFloat, Field(le=_ROUNDING)]]


class _Choice(BaseModel):
    index: int
    token_ids: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    logprobs: _Logprobs


class _Answer(BaseModel):
    choices: list[_Choice]


def sampled_in(answer: bytes, num_prompts: int, sampling: Sampling, weights: str) -> list[Sampled]:
    """Return the sampled tokens and log-probabilities for each prompt, in the order of the prompts.

    Args:
        answer: Response body to one request with all prompts.
        num_prompts: Number of prompts in the request.
        sampling: Sampling parameters of the request.
        weights: Digest of the weights that the server samples from.

    Raises:
        EngineUnavailable: the answer is malformed: tokens or log-probabilities are missing or invalid.
    """
    try:
        choices = sorted(_Answer.model_validate_json(answer).choices, key=lambda one: one.index)
    except ValidationError as error:
        first = error.errors()[0]
        raise EngineUnavailable(f"vLLM answers nonsense: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    if [one.index for one in choices] != list(range(num_prompts)):
        raise EngineUnavailable(f"vLLM answers nonsense: {len(choices)} continuations of {num_prompts} prompts")
    return [_sampled(one, sampling, weights) for one in choices]


def _sampled(choice: _Choice, sampling: Sampling, weights: str) -> Sampled:
    ids, logprobs = choice.token_ids, choice.logprobs.token_logprobs
    if len(ids) > sampling.max_new_tokens or len(logprobs) != len(ids):
        raise EngineUnavailable(
            f"vLLM answers nonsense: {len(ids)} tokens with {len(logprobs)} log-probabilities, "
            f"where {sampling.max_new_tokens} tokens were asked for at most"
        )
    if sampling.temperature == 0:
        logprobs = [0.0] * len(ids)
    return Sampled(ids, logprobs, ids[-1] in sampling.end_ids, weights)
