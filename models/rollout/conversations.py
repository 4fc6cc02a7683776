"""A policy that continues any conversations: what other agents ask of it, in its own chat template.

repeat: new conversations into the cache -> sample the next tokens of all -> their next words
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from models.text.chat_template import ChatTemplate, conversation_ids
from models.text.prompts import PromptFormat
from schemas.chat import Messages, Piece
from schemas.errors import InputError
from schemas.ports import Engine, TokenStreams
from schemas.sampling import Sampled, Sampling

_TOKENS_PER_PIECE = 16
"""Number of tokens after which new conversations may join those that run."""
_UNFINISHED = "\ufffd"
"""End of a text whose last character has more bytes to come."""


@dataclass(eq=False, slots=True)
class Conversation:
    """A conversation and the answer to it so far."""

    ids: list[int]
    limit: int
    """Maximum number of tokens of the answer."""
    temperature: float
    row: int | None = None
    """Row of its stream; None before its first tokens are sampled."""
    written: list[int] = field(default_factory=list)
    shown: str = ""
    """Text of the answer that was returned."""


class Conversations:
    """`Conversationalist` on an engine: running conversations are sampled in one batch."""

    def __init__(self, engine: Engine, format: PromptFormat, max_tokens: int, num_at_once: int = 16) -> None:
        """Create it.

        Args:
            engine: Engine that samples answers.
            format: Text as tokens.
            max_tokens: Maximum number of tokens of a conversation and its answer.
            num_at_once: Maximum number of conversations in a batch.

        Raises:
            InputError: the tokenizer has no usable chat template.
        """
        self._engine, self._tokenizer, self._max_tokens = engine, format.tokenizer, max_tokens
        self._end_ids = ChatTemplate.of(format.tokenizer).ends(format.end_ids)
        self.num_at_once = num_at_once
        self._free = list(range(num_at_once))
        self._streams: TokenStreams | None = None

    def begin(self, messages: Messages, max_new_tokens: int | None, temperature: float) -> Conversation:
        """Return a conversation that `advance` continues; see `Conversationalist`."""
        ids = conversation_ids(self._tokenizer, messages)
        room = self._max_tokens - len(ids)
        if room < 1:
            raise InputError(f"the messages have {len(ids)} tokens, and this model reads {self._max_tokens}")
        return Conversation(ids, min(room, max_new_tokens or room), temperature)

    def advance(self, conversations: Sequence[Conversation]) -> list[Piece]:
        """Return the next piece of each answer; see `Conversationalist`."""
        streams = self._streams = self._streams or self._engine.open(self.num_at_once)
        if running := [_row(one) for one in conversations if one.row is not None]:
            streams.extend(running, [[] for _ in running])
        self._let_in([one for one in conversations if one.row is None], streams)
        by_temperature = sorted(range(len(conversations)), key=lambda place: conversations[place].temperature)
        pieces: dict[int, Piece] = {}
        for temperature, places in groupby(by_temperature, key=lambda place: conversations[place].temperature):
            some = list(places)
            sampling = Sampling(_TOKENS_PER_PIECE, self._end_ids, temperature)
            sampled = streams.generate([_row(conversations[place]) for place in some], sampling)
            pieces |= {place: self._piece(conversations[place], one) for place, one in zip(some, sampled, strict=True)}
        return [pieces[place] for place in range(len(conversations))]

    def end(self, conversation: Conversation) -> None:
        """Free the place of a conversation; the last one frees the memory of all."""
        if conversation.row is not None:
            self._free.append(conversation.row)
            conversation.row = None
        if len(self._free) == self.num_at_once:
            self._streams = None

    def _let_in(self, new: Sequence[Conversation], streams: TokenStreams) -> None:
        """Give new conversations a row, and read them apart from others, which would be padded to their length."""
        for one in new:
            one.row = self._free.pop()
            streams.restart(one.row)
        if new:
            streams.extend([_row(one) for one in new], [one.ids for one in new])

    def _piece(self, conversation: Conversation, sampled: Sampled) -> Piece:
        """Return what was sampled as text, up to the limit of the answer."""
        one, new = conversation, sampled.within(conversation.limit - len(conversation.written))
        one.written = [*one.written, *new.ids]
        is_last = new.ended or new.out_of_room or len(one.written) >= one.limit
        text = self._text(one.written[:-1] if new.ended else one.written)
        if not is_last and text.endswith(_UNFINISHED):
            text = one.shown
        before, one.shown = one.shown, text
        reason = "" if not is_last else "stop" if new.ended else "length"
        return Piece(text.removeprefix(before), len(new.ids), len(one.ids), reason)

    def _text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def _row(conversation: Conversation) -> int:
    assert conversation.row is not None
    return conversation.row
