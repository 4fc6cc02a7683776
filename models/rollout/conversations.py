"""A policy that continues any conversation: what another agent asks of it, in its own chat template."""

from collections.abc import Iterator, Sequence

from models.text.chat_template import ChatTemplate, conversation_ids
from models.text.prompts import PromptFormat
from schemas.chat import Messages, Piece
from schemas.errors import InputError
from schemas.ports import Engine
from schemas.sampling import Sampling

_TOKENS_PER_PIECE = 8
_UNFINISHED = "\ufffd"
"""End of a text whose last character has more bytes to come."""


class Conversations:
    """`Conversationalist` on an engine; one conversation at a time."""

    def __init__(self, engine: Engine, format: PromptFormat, max_tokens: int) -> None:
        """Create it.

        Args:
            engine: Engine that samples answers.
            format: Text as tokens.
            max_tokens: Maximum number of tokens of a conversation and its answer.

        Raises:
            InputError: the tokenizer has no usable chat template.
        """
        self._engine, self._tokenizer, self._max_tokens = engine, format.tokenizer, max_tokens
        self._end_ids = tuple(sorted({ChatTemplate.of(format.tokenizer).end_id, *format.end_ids}))

    def answer(self, messages: Messages, max_new_tokens: int | None, temperature: float) -> Iterator[Piece]:
        """Yield an answer piece by piece; see `Conversationalist`."""
        ids = conversation_ids(self._tokenizer, messages)
        room = self._max_tokens - len(ids)
        if room < 1:
            raise InputError(f"the messages have {len(ids)} tokens, and this model reads {self._max_tokens}")
        limit = min(room, max_new_tokens or room)
        return self._pieces(ids, limit, temperature)

    def _pieces(self, ids: list[int], limit: int, temperature: float) -> Iterator[Piece]:
        stream = self._engine.open(1, len(ids) + limit)
        written, shown, ended = list[int](), "", False
        while not ended and len(written) < limit:
            stream.extend([0], [[] if written else ids])
            count = min(_TOKENS_PER_PIECE, limit - len(written))
            (sampled,) = stream.generate([0], Sampling(count, self._end_ids, temperature))
            written, ended = written + sampled.ids, sampled.ended
            text = self._text(written[:-1] if ended else written)
            is_last = ended or len(written) >= limit
            if not is_last and text.endswith(_UNFINISHED):
                text = shown
            reason = "" if not is_last else "stop" if ended else "length"
            yield Piece(text.removeprefix(shown), len(sampled.ids), len(ids), reason)
            shown = text

    def _text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
