"""What a function returned, as the output of a tool: text, JSON, images and files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import msgspec

from dragoman.base import jsontext
from dragoman.tools import results
from dragoman.tools.tool_context import keep_media
from dragoman.values.calls import Later, TakesOver, ToolOutput, run_at_work
from dragoman.values.contracts import BlobStore
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, FileRef, Media, Text, ToolCall, ToolResult
from dragoman.values.parts import NO_OUTPUT, to_parts
from dragoman.words import say

HANDED_OVER = "The conversation is handed over: you go on with it from here."
"""What the model reads that goes on: who called the tool is not asked again."""


Keep = Callable[[Media], Blob]
"""Keeps the bytes of an image or a file where the model's service finds them."""


async def to_output(value: object, name: str) -> ToolOutput:
    """`output_of` during a run: the session keeps the bytes of images and files, which may take a disk."""
    if _has_media(value):
        return await asyncio.to_thread(output_of, value, name, _keep)
    return output_of(value, name, _keep)


def output_of(value: object, name: str, keep: Keep) -> ToolOutput:
    """What a tool returned, as its output. What cannot be told to a model is an error of the tool. Raises Later if it was that."""
    match value:
        case Later():
            raise value
        case ToolOutput():
            return value
        case None:
            return ToolOutput()
        case str():
            return ToolOutput((Text(value),))
        case TakesOver():
            return ToolOutput((Text(HANDED_OVER),), hand_over=value)
        case Text() | Blob() | FileRef():
            return ToolOutput((value,))
        case list() | tuple() if any(_is_part(item) for item in value):
            parts = list(value)
        case _:
            parts = [value]
    try:
        return ToolOutput(tuple([_to_part(part, keep) for part in parts]))
    except InputError as error:
        return results.error_output(f"{name} failed: {error}", "exception")
    except (TypeError, ValueError, RecursionError) as error:
        words = f"{name} returned a {type(value).__name__}, which cannot be written as JSON ({error}): let it return a str"
        return results.error_output(words, "exception")


def function_response(call: ToolCall, value: object, *, blobs: BlobStore | None = None) -> ToolResult:
    """Turn what a tool returned into the result that a model is sent (the documents' convertToFunctionResponse): a text, a list of texts,
    images and files, bytes of an image or a PDF, `Media`, or anything that JSON can say.

    Dicts with `inlineData` or `fileData` are the image or the file that they are for Gemini's API. Bytes are kept in `blobs`, or, where
    none is given, on the result itself until it is sent. An exception becomes an error for the model.
    """
    if isinstance(value, BaseException):
        output = results.exception_output(value, call.name)
    else:
        output = output_of(value, call.name, partial(_keep_in, blobs))
    content = output.content or (Text(NO_OUTPUT),)
    return ToolResult(call.id, call.name, content, output.is_error)


def _has_media(value: object) -> bool:
    items = value if isinstance(value, (list, tuple)) else (value,)
    return any(isinstance(item, Media) or _is_image(item) or _is_media_dict(item) for item in items)


def _is_part(value: object) -> bool:
    return isinstance(value, Text | Blob | FileRef | Media) or _is_image(value) or _is_media_dict(value)


def _is_media_dict(value: object) -> bool:
    """`{"inlineData": {…}}` or `{"fileData": {…}}`, as Gemini's API has an image or a file."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((key, inner),) = value.items()
    return key in ("inlineData", "inline_data", "fileData", "file_data") and isinstance(inner, Mapping)


def _is_image(value: object) -> bool:
    """Bytes of an image or a PDF are shown as what they are: as text they are of no use to a model."""
    if not isinstance(value, bytes):
        return False
    from dragoman.values.media_types import media_type

    return bool(media_type(value[:64]))


def _to_part(value: object, keep: Keep) -> Text | Blob | FileRef:
    if isinstance(value, Text | Blob | FileRef):
        return value
    if isinstance(value, Media) or _is_image(value):
        return keep(value if isinstance(value, Media) else Media(value))  # type: ignore[arg-type]
    if _is_media_dict(value):
        (part,) = to_parts(value)  # type: ignore[arg-type]
        return keep(Media(part.data or b"", part.mime)) if isinstance(part, Blob) else part  # type: ignore[return-value]
    return Text(_text(value))


def _keep(media: Media) -> Blob:
    run = run_at_work.get()()
    if run is None:
        raise InputError(say("tools.media_outside"))
    return keep_media(run.blobs, media)


def _keep_in(blobs: BlobStore | None, media: Media) -> Blob:
    if blobs is not None:
        return keep_media(blobs, media)
    from dragoman.values.media import read_media

    return read_media(media)


def _text(value: object) -> str:
    return value if isinstance(value, str) else jsontext.dumps(msgspec.to_builtins(value, enc_hook=_plain_model, str_keys=True))


def _plain_model(value: object) -> object:
    """A pydantic model as what JSON can write."""
    if isinstance(value, str):
        return str(value)
    if (dump := getattr(value, "model_dump", None)) is not None:
        return dump(mode="json")
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
