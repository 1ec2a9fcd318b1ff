"""What an answer says, read plainly and whole: the oracle for our decoders.

The plain readers share no code with the decoders, read a stream only when all of it is there, and know nothing of our types. Finish reasons
are in our words (`stop`, `length`, ...), so that the two can be compared.
"""

from __future__ import annotations

from dataclasses import replace

from recorded.exchanges import Exchange
from recorded.plain_anthropic import read_anthropic
from recorded.plain_chat import read_chat
from recorded.plain_gemini import read_gemini
from recorded.plain_responses import read_responses
from recorded.reading import NoAnswer, Reading


def read_plainly(exchange: Exchange) -> Reading:
    """What the service said. Never raises: what cannot be read is an error in the service's place."""
    reader = {
        "anthropic": read_anthropic,
        "openai_chat": read_chat,
        "openai_responses": read_responses,
        "gemini": read_gemini,
    }[exchange.protocol]
    try:
        reading = reader(exchange)
    except (NoAnswer, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return Reading(error=f"not an answer: {type(error).__name__}: {error}")
    if reading.error is None and exchange.status >= 400:
        reading.error = exchange.body
    return _malformed_call(reading) if "tool_use_failed" in (reading.error or "") else reading


def _malformed_call(reading: Reading) -> Reading:
    """Groq reports a call that the model wrote wrongly as an error: a sampling accident, not a fault of the request."""
    return replace(reading, error=None, calls=[], finish="malformed_tool_call", raw_finish="tool_use_failed")
