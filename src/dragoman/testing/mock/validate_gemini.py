"""Gemini: would `generateContent` accept this body? The model is in the URL, so not checked here."""

from __future__ import annotations

import re

from dragoman.testing.mock.gemini_schema import (
    invalid_value,
    not_repeating,
    parse_fields,
    request_error,
    schema_violation,
    unknown_name,
)
from dragoman.testing.mock.gemini_turns import turns_violation
from dragoman.testing.mock.violation import Json, Kind, Rules, Violation, estimate_tokens, first_violation, is_base64, lone_surrogate_at

_STRUCT = "type.googleapis.com/google.protobuf.Struct"
_TOP: dict[str, Kind] = {
    "model": "string",
    "contents": "array",
    "systemInstruction": "object",
    "tools": "array",
    "toolConfig": "object",
    "generationConfig": "object",
    "safetySettings": "array",
    "cachedContent": "string",
    "labels": "object",
    "modelArmorConfig": "object",
    "continuationToken": "string",
    "serviceTier": "string",
    "store": "bool",
}
_CONTENT: dict[str, Kind] = {"role": "string", "parts": "array"}
_DATA = ("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult")
_DATA += ("toolCall", "toolResponse")
_PART: dict[str, Kind] = {
    **dict.fromkeys(_DATA, "object"),
    "text": "string",
    "thought": "bool",
    "thoughtSignature": "string",
    "videoMetadata": "object",
    "mediaResolution": "any",
    "mediaProcessing": "object",
    "partMetadata": "object",
}
_BLOB: dict[str, Kind] = {"mimeType": "string", "data": "string", "displayName": "string"}
_FILE: dict[str, Kind] = {"mimeType": "string", "fileUri": "string", "displayName": "string"}
_CALL: dict[str, Kind] = {"id": "string", "name": "string", "args": "any", "partialArgs": "array", "willContinue": "bool"}
_RESPONSE: dict[str, Kind] = {
    "id": "string",
    "name": "string",
    "response": "any",
    "parts": "array",
    "scheduling": "string",
    "willContinue": "bool",
}
_TOOL: dict[str, Kind] = {
    "functionDeclarations": "array",
    **dict.fromkeys(("googleSearch", "googleSearchRetrieval", "codeExecution", "urlContext", "googleMaps", "fileSearch"), "object"),
    **dict.fromkeys(("computerUse", "enterpriseWebSearch", "retrieval", "parallelAiSearch", "exaAiSearch"), "object"),
    "mcpServers": "array",
}
_DECLARATION: dict[str, Kind] = {
    "name": "string",
    "description": "string",
    "behavior": "string",
    "parameters": "object",
    "parametersJsonSchema": "any",
    "response": "object",
    "responseJsonSchema": "any",
}
_TOOL_CONFIG: dict[str, Kind] = {
    "functionCallingConfig": "object",
    "retrievalConfig": "object",
    "includeServerSideToolInvocations": "bool",
}
_CALLING: dict[str, Kind] = {"mode": "string", "allowedFunctionNames": "array", "streamFunctionCallArguments": "bool"}
_MODES = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
_GENERATION: dict[str, Kind] = {
    **dict.fromkeys(("temperature", "topP", "topK", "presencePenalty", "frequencyPenalty"), "number"),
    **dict.fromkeys(("candidateCount", "maxOutputTokens", "logprobs", "seed"), "int"),
    **dict.fromkeys(("responseLogprobs", "audioTimestamp", "enableAffectiveDialog", "enableEnhancedCivicAnswers"), "bool"),
    **dict.fromkeys(("stopSequences", "responseModalities", "responseFormat"), "array"),
    **dict.fromkeys(("responseMimeType", "mediaResolution"), "string"),
    **dict.fromkeys(("responseSchema", "thinkingConfig", "speechConfig", "imageConfig", "routingConfig"), "object"),
    **dict.fromkeys(("modelSelectionConfig", "translationConfig", "audioTranscriptionConfig"), "object"),
    "responseJsonSchema": "any",
}
_THINKING: dict[str, Kind] = {"includeThoughts": "bool", "thinkingBudget": "int", "thinkingLevel": "string"}
_LEVELS = ("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH")
_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")


def validate_gemini(body: Json, rules: Rules) -> Violation | None:
    """The first violation in a generateContent request, or None."""
    return first_violation(_CHECKS, body, rules)


def _unicode(body: Json, _rules: Rules) -> Violation | None:
    if lone_surrogate_at(body) is None:
        return None
    return Violation(24, "Invalid JSON payload received. Unpaired surrogate in a string.", paraphrase=True)


def _fields(body: Json, rules: Rules) -> Violation | None:
    top = parse_fields(_without_extras(body, rules), _TOP, "")
    if isinstance(top, Violation):
        return top
    if not top.get("contents"):
        return request_error("contents", "contents is not specified")
    if "systemInstruction" in top and (found := _system(top["systemInstruction"], rules)):
        return found
    return _generation(top.get("generationConfig", {}), rules)


def _system(value: object, rules: Rules) -> Violation | None:
    content = parse_fields(value, _CONTENT, "system_instruction")
    if isinstance(content, Violation):
        return content
    for index, part in enumerate(content.get("parts", [])):
        if found := _part(part, f"system_instruction.parts[{index}]", rules):
            return found
    if not content.get("parts"):
        return request_error("system_instruction.parts", "contents.parts must not be empty.")
    return None


def _generation(value: object, rules: Rules) -> Violation | None:
    config = parse_fields(value, _GENERATION, "generation_config")
    if isinstance(config, Violation):
        return config
    if not rules.temperature and any(field in config for field in ("temperature", "topP", "topK")):
        return Violation(0, "Sampling parameters are not supported for this model.", paraphrase=True)
    if found := _temperature(config.get("temperature", 1)):
        return found
    if "responseSchema" in config and "responseJsonSchema" in config:
        return Violation(0, "Only one of response_schema and response_json_schema may be set.", paraphrase=True)
    constrained = "responseSchema" in config or "responseJsonSchema" in config
    if constrained and config.get("responseMimeType") not in ("application/json", "text/x.enum"):
        return Violation(0, "A response schema needs the response mime type application/json.", paraphrase=True)
    path = "generation_config.response_schema"
    if "responseSchema" in config and (found := schema_violation(config["responseSchema"], path, path)):
        return found
    thinking = parse_fields(config.get("thinkingConfig", {}), _THINKING, "generation_config.thinking_config")
    if isinstance(thinking, Violation):
        return thinking
    if "thinkingBudget" in thinking and "thinkingLevel" in thinking:
        return Violation(0, "You can only set only one of thinking budget and thinking level.")
    level = thinking.get("thinkingLevel", "LOW")
    if level.upper() not in _LEVELS:
        kind = "type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel"
        return invalid_value(level, "generation_config.thinking_config.thinking_level", kind)
    return None


def _temperature(value: float) -> Violation | None:
    if 0 <= value < 2.0001:
        return None
    wording = f"Unable to submit request because it has a temperature value of {value:g} but the supported range is from 0 (inclusive) to "
    return Violation(0, f"{wording}2.0001 (exclusive). Update the value and try again.")


def _tools(body: Json, rules: Rules) -> Violation | None:
    top = _top(body, rules)
    names: list[str] = []
    built_in = False
    for index, value in enumerate(top.get("tools", [])):
        tool = parse_fields(value, _TOOL, f"tools[{index}]")
        if isinstance(tool, Violation):
            return tool
        if not any(field != "functionDeclarations" or tool[field] for field in tool):
            return Violation(0, f"tools[{index}].tool_type: required one_of 'tool_type' must have one initialized field")
        built_in = built_in or any(field != "functionDeclarations" for field in tool)
        for at, declaration in enumerate(tool.get("functionDeclarations", [])):
            if found := _declaration(declaration, f"tools[{index}].function_declarations[{at}]", rules):
                return found
            name = declaration["name"]
            if name in names:
                return Violation(0, f"Duplicate function declaration found: {name}")
            names.append(name)
    config = parse_fields(top.get("toolConfig", {}), _TOOL_CONFIG, "tool_config")
    if isinstance(config, Violation):
        return config
    if found := _search_beside_functions(config, bool(names and built_in), rules):
        return found
    generation = top.get("generationConfig", {})
    mime_type = generation.get("responseMimeType") or generation.get("response_mime_type")
    if names and mime_type == "application/json" and not rules.thought_signatures:
        return Violation(0, "Function calling with a response mime type: 'application/json' is unsupported")
    return _calling(config.get("functionCallingConfig", {}), names)


def _search_beside_functions(config: Json, both: bool, rules: Rules) -> Violation | None:
    """Built-in tools beside functions: from Gemini 3 on. The Gemini API wants a flag for it, which Vertex does not know."""
    has_flag = rules.search_flag and rules.call_ids
    flagged = config.get("includeServerSideToolInvocations")
    if flagged is not None and not has_flag:
        return unknown_name("includeServerSideToolInvocations", "tool_config")
    if not both or flagged:
        return None
    if not rules.thought_signatures:
        return Violation(0, "Tool use with function calling is unsupported")
    wording = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
    return Violation(0, wording) if has_flag else None


def _declaration(value: object, path: str, rules: Rules) -> Violation | None:
    fields = parse_fields(value, _DECLARATION, path)
    if isinstance(fields, Violation):
        return fields
    if not _NAME.fullmatch(fields.get("name", "")):
        wording = "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
        return request_error(f"{path}.name", f"{wording}underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.")
    if "parametersJsonSchema" in fields:
        if rules.tool_schema == "subset":
            return unknown_name("parametersJsonSchema", path, 20)
        if "parameters" in fields:
            return request_error(path, "only one of parameters and parameters_json_schema may be set", 20, paraphrase=True)
        schema = fields["parametersJsonSchema"]
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            return request_error(f"{path}.parameters_json_schema", "should be a JSON schema of type object", 20, paraphrase=True)
    if "parameters" in fields:
        return schema_violation(fields["parameters"], f"{path}.parameters", f"{path}.parameters")
    return None


def _calling(value: object, names: list[str]) -> Violation | None:
    path = "tool_config.function_calling_config"
    config = parse_fields(value, _CALLING, path)
    if isinstance(config, Violation):
        return config
    mode = config.get("mode", "AUTO")
    if mode.upper() not in _MODES:
        kind = "type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode"
        return invalid_value(mode, f"{path}.mode", kind)
    allowed = config.get("allowedFunctionNames", [])
    if allowed and mode.upper() not in ("ANY", "VALIDATED"):
        wording = "allowed_function_names may only be set when the mode is ANY or VALIDATED"
        return request_error(f"{path}.allowed_function_names", wording, paraphrase=True)
    if unknown := [name for name in allowed if name not in names]:
        return request_error(f"{path}.allowed_function_names", f"{unknown[0]} is not a declared function", paraphrase=True)
    if mode.upper() == "ANY" and not names:
        return Violation(0, "Function calling config is set without function_declarations.")
    return None


def _contents(body: Json, rules: Rules) -> Violation | None:
    for index, value in enumerate(_top(body, rules)["contents"]):
        path = f"contents[{index}]"
        content = parse_fields(value, _CONTENT, path)
        if isinstance(content, Violation):
            return content
        if content.get("role", "user") not in ("user", "model"):
            return Violation(0, "Please use a valid role: user, model.")
        if not content.get("parts"):
            return request_error(f"{path}.parts", "contents.parts must not be empty.")
        for at, part in enumerate(content["parts"]):
            if found := _part(part, f"{path}.parts[{at}]", rules):
                return found
    return None


def _part(value: object, path: str, rules: Rules) -> Violation | None:
    part = parse_fields(_without_extras(value, rules) if isinstance(value, dict) else value, _PART, path)
    if isinstance(part, Violation):
        return part
    given = [field for field in _DATA if field in part]
    if not given and part.get("thoughtSignature"):
        return None  # a thought that came with nothing but its signature
    if not given:
        return request_error(f"{path}.data", "required oneof field 'data' must have one initialized field")
    if len(given) > 1:
        return Violation(0, f"Invalid value at '{path}' (oneof), oneof field 'data' is already set. Cannot set '{given[1]}'")
    signature = part.get("thoughtSignature")
    if signature is not None and not is_base64(signature):
        return _not_base64(signature, f"{path}.thought_signature", 19)
    match given[0]:
        case "text" if not part["text"] and signature is None and not rules.call_ids:
            wording = "Unable to submit request because it must have a text parameter. Add a text parameter and try again."
            return Violation(14, wording)
        case "inlineData":
            return _blob(part["inlineData"], f"{path}.inline_data")
        case "fileData":
            file = parse_fields(part["fileData"], _FILE, f"{path}.file_data")
            if isinstance(file, Violation) or file.get("fileUri"):
                return file if isinstance(file, Violation) else None
            return request_error(f"{path}.file_data.file_uri", "file_uri must not be empty", paraphrase=True)
        case "functionCall":
            return _call(part["functionCall"], f"{path}.function_call", rules)
        case "functionResponse":
            return _response(part["functionResponse"], f"{path}.function_response", rules)
    return None


def _blob(value: object, path: str) -> Violation | None:
    blob = parse_fields(value, _BLOB, path)
    if isinstance(blob, Violation):
        return blob
    mime_type, data = blob.get("mimeType", ""), blob.get("data", "")
    if not mime_type:
        return request_error(f"{path}.mime_type", "mime_type must not be empty", paraphrase=True)
    if mime_type.startswith("image/") and mime_type not in _IMAGES:
        return Violation(0, f"Unsupported MIME type: {mime_type}")
    if not data:
        guide = "https://developers.generativeai.google/guide/troubleshooting"
        return Violation(0, f"Unable to process input image. Please retry or report in {guide}")
    return None if is_base64(data) else _not_base64(data, f"{path}.data", 0)


def _call(value: object, path: str, rules: Rules) -> Violation | None:
    if isinstance(value, dict) and (misplaced := [name for name in ("thoughtSignature", "thought_signature") if name in value]):
        return unknown_name(misplaced[0], path, 19)
    call = parse_fields(value, _CALL, path)
    if isinstance(call, Violation):
        return call
    if not call.get("name"):
        return request_error(f"{path}.name", "Name cannot be empty.")
    if "id" in call and not rules.call_ids:
        return unknown_name("id", path)
    args = call.get("args", {})
    if isinstance(args, dict):
        return None
    return not_repeating("args", path) if isinstance(args, list) else invalid_value(args, f"{path}.args", _STRUCT)


def _response(value: object, path: str, rules: Rules) -> Violation | None:
    fields = parse_fields(value, _RESPONSE, path)
    if isinstance(fields, Violation):
        return fields
    if not fields.get("name"):
        return request_error(f"{path}.name", "Name cannot be empty.")
    if "id" in fields and not rules.call_ids:
        return unknown_name("id", path)
    response = fields.get("response")
    if isinstance(response, list):
        return not_repeating("response", path, 22)
    if response is not None and not isinstance(response, dict):
        return invalid_value(response, f"{path}.response", _STRUCT, 22)
    if rules.our_results and (not response or ("output" in response) == ("error" in response)):
        wording = "response must hold either output or, where the function failed, error"
        return request_error(f"{path}.response", wording, 22, paraphrase=True)
    for index, part in enumerate(fields.get("parts", [])):
        blob = (part.get("inlineData") or part.get("inline_data")) if isinstance(part, dict) else None
        if blob and (found := _blob(blob, f"{path}.parts[{index}].inline_data")):
            return found
    return None


def _turns(body: Json, rules: Rules) -> Violation | None:
    top = _top(body, rules)
    declared = any(tool.get("functionDeclarations") or tool.get("function_declarations") for tool in top.get("tools", []))
    return turns_violation(top["contents"], declared, rules)


def _window(body: Json, rules: Rules) -> Violation | None:
    limit = rules.context_window_tokens
    if not limit or (tokens := estimate_tokens(body)) <= limit:
        return None
    return Violation(0, f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit}).")


def _not_base64(text: str, path: str, line: int) -> Violation:
    return Violation(line, f"Invalid value at '{path}' (TYPE_BYTES), Base64 decoding failed for \"{text}\"")


def _top(body: Json, rules: Rules) -> Json:
    top = parse_fields(_without_extras(body, rules), _TOP, "")
    return {} if isinstance(top, Violation) else top


def _without_extras(value: Json, rules: Rules) -> Json:
    return {name: item for name, item in value.items() if name not in rules.extra_fields}


_CHECKS = (_unicode, _fields, _tools, _contents, _turns, _window)
