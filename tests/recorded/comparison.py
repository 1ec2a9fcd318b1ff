"""What is different between an answer as our provider read it and as it is read plainly."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any, NamedTuple

from dragoman.values import errors
from dragoman.values.errors import DragomanError
from dragoman.values.events import StreamEvent, TextDelta, ToolCallDelta
from dragoman.values.messages import Citation, Response, Text, Thought
from recorded.exchanges import Exchange
from recorded.reading import PlainUsage, Reading

_OVERFLOW = ("maximum context length", "prompt is too long", "exceeds the context window", "exceeds the maximum number of tokens")
_FILTERED = ("responsible ai", "content management policy", "content_filter")
_BAD_KEY = ("api key not valid", "incorrect api key", "invalid api key", "invalid x-api-key")


class Difference(NamedTuple):
    kind: str
    """What differs: `text`, `usage`, `finish`, ... Known rests go by it."""
    service: object
    ours: object


def compare_answer(protocol: str, reading: Reading, response: Response, events: tuple[StreamEvent, ...]) -> list[Difference]:
    """What was lost or misread of an answer."""
    found = _compare_content(reading, response) + _compare_usage(reading.usage, response)
    found += _compare_citations(reading, response, ordered=protocol != "gemini")
    if reading.finish != str(response.finish):
        found.append(Difference("finish", reading.raw_finish, str(response.finish)))
    if reading.response_id and response.response_id != reading.response_id:
        found.append(Difference("response id", reading.response_id, response.response_id))
    return found + (_compare_events(response, events) if events else [])


def compare_error(exchange: Exchange, reading: Reading, error: DragomanError) -> list[Difference]:
    """Whether an error of the service is told as what it is, and in its own words."""
    expected = _error_class(exchange, reading.error or "")
    found = []
    if not isinstance(error, expected):
        found.append(Difference("error class", [kind.__name__ for kind in expected], type(error).__name__))
    words = _message(exchange.body)
    if words and "".join(words.split())[:60] not in "".join(str(error).split()):
        found.append(Difference("error words", words[:200], str(error)[:200]))
    return found


def _compare_content(reading: Reading, response: Response) -> list[Difference]:
    parts = response.message.parts
    found = []
    text = "".join(part.text for part in parts if isinstance(part, Text))
    if text != reading.text:
        found.append(Difference("text", reading.text, text))
    thinking = "".join(part.text for part in parts if isinstance(part, Thought))
    if "".join(thinking.split()) != "".join(reading.thinking.split()):  # how summaries are joined is ours to say
        found.append(Difference("thinking", reading.thinking, thinking))
    found += _compare_calls(reading, response)
    kept = "\n".join(part.opaque.json for part in parts if getattr(part, "opaque", None) is not None)
    lost = [each for each in reading.signatures if not any(json.dumps(form)[1:-1] in kept or form in kept for form in each)]
    if lost:
        found.append(Difference("signatures", [forms[0] for forms in lost], ""))
    return found + [Difference("custom call", call.get("name"), "") for call in reading.custom_calls]


def _compare_citations(reading: Reading, response: Response, ordered: bool) -> list[Difference]:
    """The sources. Gemini repeats them with every event of a stream, so there they need only all be kept."""
    cited = [part.uri for part in response.message.parts if isinstance(part, Citation)]
    same = cited == reading.citations if ordered else set(filter(None, reading.citations)) <= set(cited)
    return [] if same else [Difference("citations", reading.citations, cited)]


def _compare_calls(reading: Reading, response: Response) -> list[Difference]:
    """Names, arguments and ids. A call that the output limit cut may be there or not."""
    expected = [(call.name, call.arguments, call.id) for call in reading.calls]
    got = [(call.name, _value(call.arguments), call.id) for call in response.message.calls]
    if reading.finish == "length":
        expected, got = ([call for call in calls if isinstance(call[1], dict)] for calls in (expected, got))
    if [call[:2] for call in got] != [call[:2] for call in expected]:
        return [Difference("calls", expected, got)]
    return [Difference("call id", old[2], new[2]) for old, new in zip(expected, got, strict=True) if old[2] and old[2] != new[2]]


def _compare_usage(plain: PlainUsage, response: Response) -> list[Difference]:
    usage = response.usage
    expected = (plain.input, plain.cache_read, plain.output)
    got = (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens)
    found = [Difference("usage", plain, got)] if got != expected else []
    if plain.total and plain.total != usage.total_tokens:
        found.append(Difference("usage total", plain.total, usage.total_tokens))
    return found


def _compare_events(response: Response, events: tuple[StreamEvent, ...]) -> list[Difference]:
    """What was shown while it came must be what it is in the end."""
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    found = [Difference("text events", response.message.text, text)] if text != response.message.text else []
    arguments: dict[str, str] = defaultdict(str)
    for event in events:
        if isinstance(event, ToolCallDelta):
            arguments[event.call_id] += event.arguments
    wrong = [call for call in response.message.calls if arguments.get(call.id, call.arguments) != call.arguments]
    return found + [Difference("call events", call.arguments, arguments[call.id]) for call in wrong]


def _error_class(exchange: Exchange, said: str) -> tuple[type[DragomanError], ...]:
    low = said.lower()
    if any(words in low for words in _OVERFLOW):
        return (errors.ContextOverflow,)
    if any(words in low for words in _FILTERED):
        return (errors.Refused,)
    if any(words in low for words in _BAD_KEY) or exchange.status in (401, 403):
        return errors.Unauthorized, errors.Forbidden
    if exchange.status == 404 or "model_not_found" in low:
        return (errors.NotFound,)
    by_status = {400: errors.BadRequest, 422: errors.BadRequest, 429: errors.RateLimited}
    return (by_status.get(exchange.status, errors.ProviderError),)


def _message(body: str) -> str:
    """The sentence that tells a person what went wrong; OpenRouter has the cause behind its own."""
    document = _value(body)
    if not isinstance(document, dict):
        return ""
    error = document.get("error") or document.get("detail") or ""
    if not isinstance(error, dict):
        return str(error)
    cause = (error.get("metadata") or {}).get("raw")
    return cause if isinstance(cause, str) else str(error.get("message") or "")


def _value(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text
