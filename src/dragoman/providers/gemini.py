"""Gemini generateContent, on the Gemini API and on Vertex AI, requests. Numbers: the rules in docs/reference/wire.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never
from urllib.parse import quote

import msgspec

from dragoman.base import jsontext
from dragoman.providers.gemini_schema import reduce_schema
from dragoman.providers.gemini_stream import CONTINUATION, Decoder, read_answer
from dragoman.providers.wire import Destination, Framing, Taken, leave_out, merged_object
from dragoman.providers.wire_calls import arguments_object, declared_tools, wire_name
from dragoman.providers.wire_content import (
    EMPTY_MESSAGE,
    PHONE_IMAGES,
    Carried,
    attachments,
    base64,
    blob_data,
    media_placeholder,
    result_text,
    user_pieces,
)
from dragoman.providers.wire_schemas import tool_schema
from dragoman.values.errors import Unsupported
from dragoman.values.messages import Blob, FileRef, Message, Request, Response, Text, Thinking, Thought, ToolCall, ToolResult
from dragoman.words import say

SKIP_SIGNATURE = "skip_thought_signature_validator"
"""The documented value for a call that Gemini did not make itself."""
_KINDS = ("image/png", "image/jpeg", "image/webp", *PHONE_IMAGES, "application/pdf", "audio/", "video/")  # no GIF
CARRIED = Carried(_KINDS, dict.fromkeys(_KINDS, ("",)))
_BUDGETS = {"low": 2_048, "medium": 8_192, "high": 24_576, "max": 24_576}


class Rendered(msgspec.Struct, frozen=True):
    role: str
    parts: bytes
    """Parts joined by commas; empty if nothing of the message can be sent to this service."""
    continuation: bytes = b""
    """The token that continues this answer, as JSON, if the service paused it."""


# --- one message → parts ------------------------------------------------------------------------------------------------------------


def render(message: Message, to: Destination) -> Rendered:
    if message.role == "assistant":
        return Rendered("model", b",".join(_model_parts(message, to)), _continuation(message, to))
    results = [part for part in message.parts if isinstance(part, ToolResult)]  # (18) function responses come before any text
    parts = [_response_part(result, to) for result in results]
    parts += [_media_part(part, to) for result in results for part in attachments(result)]
    parts += [piece for part in message.parts for piece in user_pieces(part, _text_part, lambda media: _media_part(media, to))]
    return Rendered("user", b",".join(parts or [_text_part(EMPTY_MESSAGE)]))


def _model_parts(message: Message, to: Destination) -> Iterator[bytes]:
    signed = not to.profile.thought_signatures
    for part in message.parts:
        match part:
            case Text(text=text, opaque=opaque) if text.strip() or to.own(opaque):
                yield _add_signature(b'{"text":' + jsontext.encode(text) + b"}", to.own(opaque))
            case Thought(opaque=opaque) if (own := to.own(opaque)) and not own.startswith(CONTINUATION):
                yield own.encode()
            case ToolCall(opaque=opaque):
                signature = to.own(opaque) or ("" if signed else jsontext.dumps(SKIP_SIGNATURE))
                signed = True  # (19) the first call of a turn carries it
                yield _add_signature(_call_part(part, to), signature)
            case _:
                pass


def _continuation(message: Message, to: Destination) -> bytes:
    """The token of a paused answer. A call in it is answered first, and then the conversation goes on without the token."""
    last = message.parts[-1] if message.parts else None
    if not isinstance(last, Thought) or message.calls:
        return b""
    own = to.own(last.opaque, same_model=True)
    return jsontext.encode(jsontext.decode(own)["continuationToken"]) if own.startswith(CONTINUATION) else b""


def _add_signature(part: bytes, signature: str) -> bytes:
    """(19) The signature is a sibling field on the part it came with."""
    return part[:-1] + b',"thoughtSignature":' + signature.encode() + b"}" if signature else part


def _call_part(call: ToolCall, to: Destination) -> bytes:
    head = _open_named_object(call.id, call.name, to)
    return b'{"functionCall":' + head + b',"args":' + arguments_object(call) + b"}}"


def _response_part(result: ToolResult, to: Destination) -> bytes:
    answer = {"error" if result.is_error else "output": result_text(result)}  # (22)
    return b'{"functionResponse":' + _open_named_object(result.call_id, result.name, to) + b',"response":' + jsontext.encode(answer) + b"}}"


def _open_named_object(call_id: str, name: str, to: Destination) -> bytes:
    """A JSON object with id and name, without its closing brace: the caller adds fields and closes it."""
    ids = {"id": call_id} if to.deployment.call_ids else {}
    return jsontext.encode({**ids, "name": wire_name(name)})[:-1]


def _text_part(text: str) -> bytes:
    return b'{"text":' + jsontext.encode(text) + b"}"


def _media_part(part: Blob | FileRef, to: Destination) -> bytes:
    if (text := media_placeholder(part, to, CARRIED)) is not None:
        return _text_part(text)
    if isinstance(part, FileRef):
        return jsontext.encode({"fileData": {"mimeType": part.mime, "fileUri": part.uri}})
    data = blob_data(part, to)
    return b'{"inlineData":{"mimeType":' + jsontext.encode(part.mime) + b',"data":"' + base64(data) + b'"}}'


# --- request → body -----------------------------------------------------------------------------------------------------------------


def body(request: Request, rendered: Sequence[Rendered], to: Destination, *, stream: bool) -> bytes:
    tail: dict[str, object] = {}
    if config := _generation(request, to):
        tail["generationConfig"] = config
    if tool_config := _tool_config(request, to):
        tail["toolConfig"] = tool_config
    tail.update(to.deployment.extra_body)
    asked, token = _without_paused(rendered)
    continuation = b',"continuationToken":' + token if token else b""
    return b"".join([*_prompt(request, asked, to), continuation, merged_object(leave_out(tail, request.omit)), b"}"])


def _without_paused(rendered: Sequence[Rendered]) -> tuple[Sequence[Rendered], bytes]:
    """The messages to send, and the token if the last is a paused answer: the service wants the same request again, without its answer."""
    token = rendered[-1].continuation if rendered else b""
    end = len(rendered)
    while token and end and rendered[end - 1].continuation:
        end -= 1
    return rendered[:end], token


def _prompt(request: Request, rendered: Sequence[Rendered], to: Destination) -> list[bytes]:
    pieces = [b"{"]
    if request.system.strip():
        pieces.append(b'"systemInstruction":{"parts":[' + _text_part(request.system) + b"]},")
    if tools := _tools(request, to):  # (21) on every request
        pieces.append(b'"tools":[' + b",".join(tools) + b"],")
    pieces.append(b'"contents":[')
    role = ""
    for item in rendered:
        if not item.parts:
            continue
        if item.role == role:  # (18) runs of one role are one content
            pieces.append(b",")
        else:
            pieces += [b"]}," if role else b"", b'{"role":"', item.role.encode(), b'","parts":[']
            role = item.role
        pieces.append(item.parts)
    return [*pieces, b"]}]" if role else b"]"]


def _tools(request: Request, to: Destination) -> list[bytes]:
    tools: list[bytes] = []
    if specs := declared_tools(request):
        declared = b",".join(_declaration(tool.name, tool.description, tool.parameters, to) for tool in specs)
        tools.append(b'{"functionDeclarations":[' + declared + b"]}")
    if request.settings.search:
        tools.append(b'{"googleSearch":{}}')
    return tools


def _declaration(name: str, description: str, parameters: str, to: Destination) -> bytes:
    head = jsontext.encode({"name": name, "description": description})[:-1]
    if to.profile.tool_schema == "json_schema":  # (20)
        return head + b',"parametersJsonSchema":' + tool_schema(parameters) + b"}"
    schema = reduce_schema(jsontext.decode(tool_schema(parameters)))
    if not schema.get("properties"):
        return head + b"}"  # an object without properties was once rejected; leaving `parameters` out never was
    return head + b',"parameters":' + jsontext.encode(schema) + b"}"


def _tool_config(request: Request, to: Destination) -> dict[str, object]:
    if not request.tools:
        return {"functionCallingConfig": _tool_choice("none")} if declared_tools(request) else {}
    config: dict[str, object] = {}
    if request.settings.tool_choice != "auto":
        config["functionCallingConfig"] = _tool_choice(request.settings.tool_choice)
    if request.settings.search:
        if not to.profile.thought_signatures:  # true from Gemini 3 on
            raise Unsupported(say("providers.no_search_with_tools", model=to.model))
        if to.deployment.search_flag:
            config["includeServerSideToolInvocations"] = True
    return config


def _tool_choice(choice: str) -> dict[str, object]:
    if choice in ("none", "required"):
        return {"mode": "NONE" if choice == "none" else "ANY"}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}


def _generation(request: Request, to: Destination) -> dict[str, object]:
    settings = request.settings
    config: dict[str, object] = {}
    if to.profile.temperature:
        sampling = {"temperature": settings.temperature, "topP": settings.top_p, "topK": settings.top_k}
        config.update({key: value for key, value in sampling.items() if value is not None})
    if settings.max_output_tokens:
        config["maxOutputTokens"] = settings.max_output_tokens
    if settings.stop:
        config["stopSequences"] = list(settings.stop)
    if settings.response_mime or settings.response_schema:
        config["responseMimeType"] = settings.response_mime or "application/json"
        if request.tools and config["responseMimeType"] == "application/json" and not to.profile.thought_signatures:
            raise Unsupported(say("providers.no_json_with_tools", model=to.model))
    if settings.response_schema:
        schema = jsontext.decode(settings.response_schema)
        full = to.profile.tool_schema == "json_schema"
        config["responseJsonSchema" if full else "responseSchema"] = schema if full else reduce_schema(schema)
    if settings.thinking is not None and (thinking := _thinking(settings.thinking, to)):
        config["thinkingConfig"] = thinking
    return config


def _thinking(asked: Thinking, to: Destination) -> dict[str, object] | None:
    match to.profile.thinking:
        case "level":
            return {"includeThoughts": asked.effort != "off", "thinkingLevel": to.profile.effort_word(asked.effort) or "low"}
        case "budget" if asked.effort == "off":
            return {"thinkingBudget": 0} if to.profile.thinking_off else {"includeThoughts": False, "thinkingBudget": 128}
        case "budget":
            return {"includeThoughts": True, "thinkingBudget": asked.budget_tokens or _BUDGETS[asked.effort]}
        case "always":
            return {"includeThoughts": asked.effort != "off"}
        case _:
            return None


# --- the other calls, and responses ---------------------------------------------------------------------------------------------------


def path(to: Destination, *, stream: bool) -> str:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{_model_path(to)}:{method}"


def _model_path(to: Destination) -> str:
    version = "" if to.deployment.auth == "vertex" else "/v1beta"
    return f"{version}/models/{quote(to.model.removeprefix('models/'), safe='')}"


def headers(to: Destination) -> dict[str, str]:
    return {}


def framing() -> Framing:
    from dragoman.http.sse import SSEDecoder

    return SSEDecoder()


def decoder(to: Destination, taken: Taken) -> Decoder:
    return Decoder(to, taken)


def from_wire(data: Any, to: Destination, taken: Taken) -> Response:
    return read_answer(data, to, taken)


def count_request(request: Request, rendered: Sequence[Rendered], to: Destination) -> tuple[str, bytes]:
    prompt = b"".join([*_prompt(request, _without_paused(rendered)[0], to), b"}"])
    if to.deployment.auth == "vertex":  # Vertex takes the fields as they are
        return f"{_model_path(to)}:countTokens", prompt
    model = jsontext.encode(f"models/{to.model.removeprefix('models/')}")
    return f"{_model_path(to)}:countTokens", b'{"generateContentRequest":{"model":' + model + b"," + prompt[1:] + b"}"


def count_answer(data: Any) -> int:
    return int(data["totalTokens"])


def embed_request(texts: Sequence[str], to: Destination) -> tuple[str, bytes]:
    contents: list[dict[str, object]] = [{"parts": [{"text": text}]} for text in texts]
    match to.profile.embed_method:
        case "batch":
            model = f"models/{to.model.removeprefix('models/')}"
            requests = [{"model": model, "content": content} for content in contents]
            return f"{_model_path(to)}:batchEmbedContents", jsontext.encode({"requests": requests})
        case "content":  # one text a request: the deployment's embed_batch is 1
            return f"{_model_path(to)}:embedContent", jsontext.encode({"content": contents[0]})
        case "predict":
            return f"{_model_path(to)}:predict", jsontext.encode({"instances": [{"content": text} for text in texts]})
        case method:
            assert_never(method)


def embed_answer(data: Any) -> list[list[float]]:
    if "predictions" in data:
        return [row["embeddings"]["values"] for row in data["predictions"]]
    rows = data["embeddings"] if "embeddings" in data else [data["embedding"]]
    return [row["values"] for row in rows]
