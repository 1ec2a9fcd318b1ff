"""One part of a message as the APIs of Gemini, OpenAI and Anthropic write it, read as our own. Whatever is not read is refused in words."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import msgspec

from dragoman.base import jsontext
from dragoman.values.errors import InputError, shown
from dragoman.values.media_types import type_of_name
from dragoman.values.messages import Blob, FileRef, Opaque, Part, Text, Thought, ToolCall, ToolResult
from dragoman.words import say

LISTS = (list, tuple)
GEMINI, ANTHROPIC = "gemini", "anthropic"
"""The deployments that what only they can read is sent back to."""
SKIP_SIGNATURE = "skip_thought_signature_validator"
"""Stands where a call has no signature."""

_GEMINI_NAMES = {
    "text": "text",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "thought_signature": "thoughtSignature",
    "mime_type": "mimeType",
    "file_uri": "fileUri",
    "display_name": "displayName",
}
"""How google-genai writes a key, and how the service does."""
GEMINI_KINDS = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult")
_HINTS = frozenset({"cache_control", "citations", "annotations", "logprobs", "status", "id", "caller", "index"})
"""Keys beside a block that change nothing of what it says."""
_AUDIO = {"wav": "audio/wav", "mp3": "audio/mpeg"}


class Fields:
    """The fields of one dict, each taken once and checked. What nobody takes is an error: nothing is left out in silence."""

    def __init__(self, given: Mapping[Any, Any], where: str, names: Mapping[str, str] | None = None) -> None:
        self._left = {(names or {}).get(key, key): value for key, value in given.items() if value is not None}
        self.where = where

    def __contains__(self, key: str) -> bool:
        return key in self._left

    def keys(self) -> list[str]:
        return [str(key) for key in self._left]

    def take(self, key: str) -> Any:
        return self._left.pop(key, None)

    def text(self, key: str, default: str | None = None) -> str:
        value = self._left.pop(key, default)
        if value is None:
            self.refuse("values.api_missing", key=key)
        return self._text(key, value)

    def table(self, key: str, default: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        value = self._left.pop(key, default)
        if not isinstance(value, Mapping):
            self.refuse("values.api_type", key=key, expected=say("values.api_dict"), given=shown(value))
        return value

    def items(self, key: str) -> list[Any]:
        value = self._left.pop(key, ())
        if not isinstance(value, LISTS):
            self.refuse("values.api_type", key=key, expected=say("values.api_list"), given=shown(value))
        return list(value)

    def flag(self, key: str) -> bool:
        value = self._left.pop(key, False)
        if not isinstance(value, bool):
            self.refuse("values.api_type", key=key, expected="True/False", given=shown(value))
        return value

    def inside(self, key: str, names: Mapping[str, str] | None = None) -> Fields:
        return Fields(self.table(key), f"{self.where}, {key}", names)

    def json(self, key: str) -> str:
        """The arguments of a call: an object, or the text of one."""
        value = self._left.pop(key, None)
        if isinstance(value, str):
            return value
        if value is not None and not isinstance(value, Mapping):
            self.refuse("values.api_type", key=key, expected=say("values.api_dict"), given=shown(value))
        return self.dump(key, dict(value or {}))

    def dump(self, key: str, value: object) -> str:
        try:
            return jsontext.dumps(value)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            self.refuse("values.api_not_json", key=key, reason=error)

    def drop(self, *keys: str) -> None:
        for key in keys:
            self._left.pop(key, None)

    def close(self, known: str = "") -> None:
        """Refuse what is left."""
        if self._left:
            key = next(iter(self._left))
            self.refuse("values.api_key_of", key=key, known=known) if known else self.refuse("values.api_key", key=key)

    def refuse(self, sentence: str, **values: object) -> NoReturn:
        raise InputError(say(sentence, where=self.where, **values))

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            self.refuse("values.api_type", key=key, expected=say("values.api_text"), given=shown(value))
        return jsontext.valid_unicode(value)


def read_part(given: Mapping[Any, Any], where: str) -> Iterator[Part]:
    """The parts that one dict stands for: one, or for a block that is split, several."""
    if "type" in given:
        return _read_block(Fields(given, where))
    return iter((_read_gemini(given, where),))


def is_part(given: Mapping[Any, Any]) -> bool:
    """Whether a dict is meant as a part, rightly written or not."""
    if "type" in given or isinstance(given.get("thought"), str):
        return True
    return any(_GEMINI_NAMES.get(key, key) in (*GEMINI_KINDS, "thoughtSignature") for key in given)


# --- Gemini ---------------------------------------------------------------------------------------------------------------------


def _read_gemini(given: Mapping[Any, Any], where: str) -> Part:
    fields = Fields(given, where, _GEMINI_NAMES)
    kinds = [kind for kind in GEMINI_KINDS if kind in fields]
    if isinstance(given.get("thought"), str):  # as document 003 has it; the service has a flag beside the text
        kinds.append("thought")
    if len(kinds) > 1:
        fields.refuse("values.api_two_kinds", one=kinds[0], other=kinds[1])
    if kinds == ["thought"]:
        thinking = Thought(fields.text("thought"))
        fields.close("thought")
        return thinking
    if not kinds and "thoughtSignature" not in fields:
        fields.refuse("values.api_unknown", keys=", ".join(fields.keys()) or "{}")
    signature = _signature(fields)
    thought = fields.flag("thought")
    part = _gemini_part(fields, kinds[0] if kinds else "text", thought, signature)
    fields.close(", ".join(GEMINI_KINDS))
    return part


def _gemini_part(fields: Fields, kind: str, thought: bool, signature: str) -> Part:
    opaque = Opaque(GEMINI, jsontext.dumps(signature)) if signature else None
    match kind:
        case "text":
            text = fields.text("text", "")
            if not thought and (text or opaque is None):
                return Text(text, opaque)
            whole = {"text": text, **({"thought": True} if thought else {}), "thoughtSignature": signature}
            return Thought(text if thought else "", Opaque(GEMINI, jsontext.dumps(whole)) if signature else None)
        case "inlineData":
            return read_inline(fields.inside("inlineData", _GEMINI_NAMES))
        case "fileData":
            inner = fields.inside("fileData", _GEMINI_NAMES)
            inner.drop("displayName")
            uri = inner.text("fileUri")
            part = FileRef(inner.text("mimeType", type_of_name(uri, "application/octet-stream")), uri)
            inner.close("mimeType, fileUri")
            return part
        case "functionCall":
            inner = fields.inside("functionCall", _GEMINI_NAMES)
            call = ToolCall(inner.text("id", ""), inner.text("name"), inner.json("args"), opaque)
            inner.close("id, name, args")
            return call
        case "functionResponse":
            return _function_response(fields.inside("functionResponse", _GEMINI_NAMES))
        case _:  # code that the service ran by itself
            whole = {kind: fields.take(kind), **({"thoughtSignature": signature} if signature else {})}
            return Thought("", Opaque(GEMINI, fields.dump(kind, whole)))


def _signature(fields: Fields) -> str:
    value = fields.take("thoughtSignature")
    text = b64encode(value).decode() if isinstance(value, bytes) else value or ""
    if not isinstance(text, str):
        fields.refuse("values.api_type", key="thoughtSignature", expected=say("values.api_text"), given=shown(value))
    return "" if text == SKIP_SIGNATURE else text


def read_inline(inner: Fields) -> Blob:
    """`inlineData`: bytes, or base64 text."""
    inner.drop("displayName")
    mime, data = inner.text("mimeType"), inner.take("data")
    inner.close("mimeType, data")
    return Blob.of(mime, data if isinstance(data, bytes) else from_base64(data, inner))


def _function_response(inner: Fields) -> ToolResult:
    call_id, name = inner.text("id", ""), inner.text("name")
    response = inner.take("response")
    media: list[Text | Blob | FileRef] = []
    for item in inner.items("parts"):
        read = _read_gemini(item, inner.where) if isinstance(item, Mapping) else item
        if not isinstance(read, Text | Blob | FileRef):
            inner.refuse("values.api_type", key="parts", expected="inlineData, fileData", given=shown(item))
        media.append(read)
    inner.drop("scheduling", "willContinue", "will_continue")
    inner.close("id, name, response, parts")
    if parts := _parts_in(response):
        return ToolResult(call_id, name, (*result_content(parts, inner), *media))
    text, is_error = _response_text(response, inner)
    return ToolResult(call_id, name, (*((Text(text),) if text else ()), *media), is_error)


def _parts_in(response: object) -> list[Any]:
    """`{"content": […]}`, as document 004 and MCP write what a tool returned; empty where that is data and no parts."""
    content = response.get("content") if isinstance(response, Mapping) and len(response) == 1 else None
    return list(content) if isinstance(content, LISTS) and all(map(_is_plain_part, content)) else []


def _is_plain_part(item: object) -> bool:
    """A text, an image or a file and nothing beside it: with more, it may be any data."""
    if not isinstance(item, Mapping):
        return False
    keys = {_GEMINI_NAMES.get(key, key) for key in item}
    return keys in ({"text"}, {"inlineData"}, {"fileData"}) or (keys == {"type", "text"} and item["type"] == "text")


def _response_text(response: object, inner: Fields) -> tuple[str, bool]:
    """The text of a response: the documents write `output`, the service reads `output` and `error`, programs write what they like."""
    match response:
        case None:
            return "", False
        case str():
            return jsontext.valid_unicode(response), False
        case Mapping() if len(response) == 1 and (key := next(iter(response))) in ("output", "error", "content", "result"):
            value = response[key]
            return jsontext.valid_unicode(value) if isinstance(value, str) else inner.dump("response", value), key == "error"
        case Mapping():
            return inner.dump("response", dict(response)), bool(response.get("error"))
        case _:
            inner.refuse("values.api_type", key="response", expected=say("values.api_dict"), given=shown(response))


# --- blocks with a type: OpenAI, Anthropic -----------------------------------------------------------------------------------------


def _read_block(fields: Fields) -> Iterator[Part]:
    kind = fields.text("type")
    if kind in ("thinking", "redacted_thinking"):
        yield _thinking(kind, fields)
    elif kind == "tool_use":
        yield ToolCall(fields.text("id"), fields.text("name"), fields.json("input"))
    elif kind == "tool_result":
        yield _tool_result(fields)
    else:
        yield _said(kind, fields)
    fields.drop(*_HINTS)
    fields.close()


def _said(kind: str, fields: Fields) -> Text | Blob | FileRef:
    match kind:
        case "text" | "input_text" | "output_text":
            return Text(fields.text("text"))
        case "refusal":
            return Text(fields.text("refusal"))
        case "image_url" | "input_image" | "video_url":
            return _pictured(kind, fields)
        case "image" | "document":
            return _sourced(kind, fields.inside("source"))
        case "input_audio":
            inner = fields.inside("input_audio")
            data, form = inner.take("data"), inner.text("format")
            inner.close("data, format")
            return Blob.of(_AUDIO.get(form, f"audio/{form}"), from_base64(data, inner))
        case "file" | "input_file":
            return _filed(fields.inside("file") if kind == "file" else fields)
        case _:
            fields.refuse("values.api_kind", kind=kind)


def _pictured(kind: str, fields: Fields) -> Blob | FileRef:
    fields.drop("detail")
    unknown = "video/mp4" if kind == "video_url" else "image/jpeg"
    if file_id := fields.take("file_id"):
        return FileRef(unknown, str(file_id))
    key = "image_url" if kind == "input_image" else kind
    value = fields.take(key)
    inner = Fields(value, f"{fields.where}, {key}") if isinstance(value, Mapping) else Fields({"url": value}, fields.where)
    inner.drop("detail")
    url = inner.text("url")
    inner.close("url")
    return from_url(url, unknown, fields)


def _sourced(kind: str, source: Fields) -> Text | Blob | FileRef:
    """Anthropic: an image or a document, and where it comes from."""
    unknown = "image/jpeg" if kind == "image" else "application/pdf"
    match form := source.text("type"):
        case "base64":
            mime, data = source.text("media_type"), source.take("data")
            read: Text | Blob | FileRef = Blob.of(mime, from_base64(data, source))
        case "text":
            source.drop("media_type")
            read = Text(source.text("data"))
        case "url":
            url = source.text("url")
            read = FileRef(type_of_name(url, unknown), url)
        case "file":
            read = FileRef(unknown, source.text("file_id"))
        case _:
            source.refuse("values.api_kind", kind=form)
    source.close()
    return read


def _filed(fields: Fields) -> Blob | FileRef:
    """OpenAI: a file by its content, its id or its address."""
    name = fields.text("filename", "document.pdf")
    unknown = type_of_name(name, "application/pdf")
    data, file_id, url = (fields.take(key) for key in ("file_data", "file_id", "file_url"))
    given = [each for each in (data, file_id, url) if each is not None]
    if len(given) != 1 or not isinstance(given[0], str):
        fields.refuse("values.api_missing", key="file_data")
    read = from_url(given[0], unknown, fields) if url is not None else FileRef(unknown, given[0])
    if data is not None:
        read = from_url(data, unknown, fields) if data.startswith("data:") else Blob.of(unknown, from_base64(data, fields))
    fields.drop("type", *_HINTS)
    fields.close()
    return read


def _thinking(kind: str, fields: Fields) -> Thought:
    """Anthropic takes its thinking back as it was, with the signature; without one, it is only text."""
    text = fields.text("thinking") if kind == "thinking" else ""
    seal = "signature" if kind == "thinking" else "data"
    if not (signature := fields.text(seal, "")):
        return Thought(text)
    block = {"type": kind, **({"thinking": text} if kind == "thinking" else {}), seal: signature}
    return Thought(text, Opaque(ANTHROPIC, jsontext.dumps(block)))


def _tool_result(fields: Fields) -> ToolResult:
    """The name is filled in by whoever knows the call."""
    call_id, content, is_error = fields.text("tool_use_id"), fields.take("content"), fields.flag("is_error")
    return ToolResult(call_id, "", result_content(content, fields), is_error)


def result_content(content: Any, fields: Fields) -> tuple[Text | Blob | FileRef, ...]:
    """The content of a result: a text, or a list of blocks."""
    if content is None or isinstance(content, str):
        return (Text(jsontext.valid_unicode(content)),) if content else ()
    if not isinstance(content, LISTS):
        fields.refuse("values.api_type", key="content", expected=say("values.api_text_or_list"), given=shown(content))
    parts: list[Text | Blob | FileRef] = []
    for item in content:
        if not isinstance(item, Mapping):
            fields.refuse("values.api_type", key="content", expected=say("values.api_text_or_list"), given=shown(item))
        for part in read_part(item, fields.where):
            if not isinstance(part, Text | Blob | FileRef):
                fields.refuse("values.api_kind", kind=str(item.get("type")))
            parts.append(part)
    return tuple(parts)


# --- bytes and addresses -----------------------------------------------------------------------------------------------------------


def from_url(url: str, unknown: str, fields: Fields) -> Blob | FileRef:
    """What a `data:` URL holds; another address stays one."""
    if not url.startswith("data:"):
        return FileRef(type_of_name(url, unknown), url)
    head, comma, data = url[5:].partition(",")
    if not comma or not head.endswith(";base64"):
        fields.refuse("values.api_base64", reason=say("values.api_data_url"))
    return Blob.of(head.removesuffix(";base64").partition(";")[0] or unknown, from_base64(data, fields))


def from_base64(data: object, fields: Fields) -> bytes:
    if not isinstance(data, str):
        fields.refuse("values.api_type", key="data", expected="base64", given=shown(data))
    plain = "".join(data.split()).translate({ord("-"): "+", ord("_"): "/"})  # google-genai writes the alphabet of URLs
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (NotBase64, ValueError) as error:
        raise InputError(say("values.api_base64", where=fields.where, reason=str(error))) from None
