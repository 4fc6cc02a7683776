"""Text in characters, for chat models at an endpoint, whose tokenizers and chat templates are not known."""

from collections.abc import Sequence

CHARACTERS_PER_TOKEN = 4
"""Characters of a token, on average."""
END_ID = 0x110000
"""Mark of a whole answer: one more than the last character."""


class Characters:
    """Encoding of each character as its code point; `PromptFormat` has that of a tokenizer."""

    end_ids = (END_ID,)

    def ids(self, text: str) -> list[int]:
        """Return the code points of a text."""
        return [ord(character) for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        """Return code points as text."""
        return "".join(map(chr, ids))
