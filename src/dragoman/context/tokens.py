"""Token counts: an offline estimate, anchored to the service's own count as soon as there is one.

The raw estimate knows scripts, not vocabularies. The model's tokenizer is a factor, learned from the growth between one request and the
next; so an estimate is the last reported count plus what came since, and its error is that of the new part alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.values.messages import (
    Blob,
    Citation,
    Content,
    FileRef,
    Message,
    Part,
    Request,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    ToolSpec,
    is_list,
)
from dragoman.values.parts import to_messages
from dragoman.values.profile import Profile

ASCII_PER_TOKEN = 3.9
"""Characters of English and code per token; measured, with the factor, on real sessions."""
_TWO_BYTE, _THREE_BYTE, _FOUR_BYTE = 0.55, 0.85, 2.2
"""Tokens per character: accented Latin, Greek and Cyrillic; Chinese, Japanese and Korean; emoji."""
MESSAGE_TOKENS = 4
CALL_TOKENS = 14
RESULT_TOKENS = 10
TOOL_TOKENS = 12
IMAGE_TOKENS = 1_600
PDF_BYTES_PER_TOKEN = 30
"""A page of a PDF is some 50 kB and 1,500 to 3,000 tokens."""
OTHER_BYTES_PER_TOKEN = 60

MIN_SCALE, MAX_SCALE = 0.4, 3.0
LEAST_ERROR = 0.02
"""An estimate is never taken to be better than this."""
_MEMORY = 0.9
"""The weight of what was learned before, relative to what is learned now."""


Sizable = Content | ToolSpec | Request
"""What an estimate can be made of."""


def estimate_tokens(of: Sizable | Iterable[Sizable], profile: Profile | None = None) -> int:
    """About how many input tokens a text, a message, a part of one, a tool or a whole request has; of several, their sum.

    Nothing is sent. With a model's profile (`provider.profile(name)`) it is scaled to its tokenizer. For the service's own count:
    `await provider.count_tokens(request)`.
    """
    several: Any = of if is_list(of) else (of,)
    raw = sum(map(_raw_tokens, several))
    return round(raw * (profile.token_scale if profile is not None else 1.0))


def _raw_tokens(of: Sizable) -> float:
    match of:
        case str():
            return text_tokens(of)
        case Message():
            return message_tokens(of)
        case ToolSpec():
            return tools_tokens((of,))
        case Request():
            return text_tokens(of.system) + tools_tokens(of.tools) + sum(map(message_tokens, of.messages))
        case Text() | Thought() | ToolCall() | ToolResult() | Blob() | FileRef() | Citation():
            return part_tokens(of)
        case _:  # as other APIs write it, bytes, a file
            return sum(map(message_tokens, to_messages(of)))


def text_tokens(text: str) -> float:
    """A raw estimate. For any script, it takes a few passes in C over the text."""
    if text.isascii():
        return len(text) / ASCII_PER_TOKEN
    length = len(text)
    ascii_count = len(text.encode("ascii", "ignore"))
    in_utf8 = len(text.encode("utf-8", "surrogatepass"))
    astral = len(text.encode("utf-16-le", "surrogatepass")) // 2 - length
    short = length - ascii_count - astral  # of two and three bytes
    three = (in_utf8 - ascii_count - 4 * astral) - 2 * short
    return ascii_count / ASCII_PER_TOKEN + (short - three) * _TWO_BYTE + three * _THREE_BYTE + astral * _FOUR_BYTE


def message_tokens(message: Message) -> int:
    return round(MESSAGE_TOKENS + sum(map(part_tokens, message.parts)))


def part_tokens(part: Part) -> float:
    match part:
        case Text(text=text) | Thought(text=text):
            return text_tokens(text)
        case ToolCall(name=name, arguments=arguments):
            return CALL_TOKENS + text_tokens(name) + text_tokens(arguments)
        case ToolResult(content=content):
            return RESULT_TOKENS + sum(map(part_tokens, content))
        case Blob(mime=mime, size=size):
            if mime.startswith("image/"):
                return IMAGE_TOKENS
            return size / (PDF_BYTES_PER_TOKEN if mime == "application/pdf" else OTHER_BYTES_PER_TOKEN)
        case FileRef():
            return IMAGE_TOKENS
        case Citation():
            return 0  # never sent back


def tools_tokens(tools: Iterable[ToolSpec]) -> int:
    return round(sum(TOOL_TOKENS + text_tokens(tool.name) + text_tokens(tool.description) + text_tokens(tool.parameters) for tool in tools))


class Meter:
    """How one model's token counts relate to raw estimates. Fed with each count the service reports."""

    def __init__(self) -> None:
        self.reported = 0
        """Input tokens of the last request, as the service counted them; 0 before the first."""
        self.raw = 0
        """The raw estimate of that same request."""
        self.errors: list[float] = []
        """(estimate - reported) / reported of each anchored estimate, the newest last."""
        self._grown_reported = 0.0
        self._grown_raw = 0.0

    def tokens(self, raw: int, prior: float = 1.0) -> int:
        """The input tokens of a request with this raw estimate. `prior`: the factor to use while nothing is known."""
        if not self.reported:
            return round(raw * prior)
        return max(round(self.reported + self.scale(prior) * (raw - self.raw)), 0)

    def scale(self, prior: float = 1.0) -> float:
        """Tokens per raw token."""
        if self._grown_raw > 0:
            return min(max(self._grown_reported / self._grown_raw, MIN_SCALE), MAX_SCALE)
        if self.raw > 0 and 0.6 < self.reported / self.raw < 1.7:
            return self.reported / self.raw
        return prior  # far from any tokenizer: something is sent that we do not see

    def observe(self, raw: int, reported: int) -> None:
        """Record the service's count for a request with this raw estimate."""
        if self.reported:
            self.errors.append((self.tokens(raw) - reported) / reported)
            del self.errors[:-500]
            self._learn(raw - self.raw, reported - self.reported)
        self.raw, self.reported = raw, reported

    def _learn(self, raw: int, reported: int) -> None:
        if raw < 30 or not MIN_SCALE <= reported / raw <= MAX_SCALE:
            return  # too little to learn from, or something was added or removed that we do not see
        self._grown_raw = self._grown_raw * _MEMORY + raw
        self._grown_reported = self._grown_reported * _MEMORY + reported
