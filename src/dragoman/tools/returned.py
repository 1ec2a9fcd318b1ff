"""What a function returned, as the output of a tool: text, JSON, images and files."""

from __future__ import annotations

import asyncio

import msgspec

from dragoman.base import jsontext
from dragoman.base.words import say
from dragoman.tools import results
from dragoman.tools.textfile import media_type
from dragoman.tools.tool_context import keep_media
from dragoman.values.calls import Later, Media, TakesOver, ToolOutput, run_at_work
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, FileRef, Text

HANDED_OVER = "The conversation is handed over: you go on with it from here."
"""What the model reads that goes on: who called the tool is not asked again."""


async def to_output(value: object, name: str) -> ToolOutput:
    """Bytes of images and files are kept by the session. What cannot be told to a model is an error of the tool.

    Raises Later if it was that.
    """
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
        return ToolOutput(tuple([await _to_part(part) for part in parts]))
    except InputError as error:
        return results.error_output(f"{name} failed: {error}", "exception")
    except (TypeError, ValueError, RecursionError) as error:
        words = f"{name} returned a {type(value).__name__}, which cannot be written as JSON ({error}): let it return a str"
        return results.error_output(words, "exception")


def _is_part(value: object) -> bool:
    return isinstance(value, Text | Blob | FileRef | Media) or _is_image(value)


def _is_image(value: object) -> bool:
    """Bytes of an image or a PDF are shown as what they are: as text they are of no use to a model."""
    return isinstance(value, bytes) and bool(media_type(value[:64]))


async def _to_part(value: object) -> Text | Blob | FileRef:
    if isinstance(value, Text | Blob | FileRef):
        return value
    if isinstance(value, Media) or _is_image(value):
        return await _keep(value if isinstance(value, Media) else Media(value))  # type: ignore[arg-type]
    return Text(_text(value))


async def _keep(media: Media) -> Blob:
    run = run_at_work.get()()
    if run is None:
        raise InputError(say("tools.media_outside"))
    return await asyncio.to_thread(keep_media, run.blobs, media)  # the store may write to a disk


def _text(value: object) -> str:
    return value if isinstance(value, str) else jsontext.dumps(msgspec.to_builtins(value, enc_hook=_plain_model, str_keys=True))


def _plain_model(value: object) -> object:
    """A pydantic model as what JSON can write."""
    if isinstance(value, str):
        return str(value)
    if (dump := getattr(value, "model_dump", None)) is not None:
        return dump(mode="json")
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")
