"""The library: messages given by a caller."""

TEXTS = {
    "values.or": " or ",
    "values.no_counting": "{name} does not count tokens",
    "values.no_embeddings": "{name} makes no embeddings",
    "values.thinking_wrong": "settings.thinking is a Thinking, True or False, one of {efforts}, or a budget in tokens, not {given}",
    "values.schema_not_json": "the schema cannot be written as JSON: {reason}",
    "values.schema_wrong": "settings.response_schema is JSON text, a dict or a type, not {given}",
    "values.wrong_role": "Role must be user or assistant, but got {role!r} in message {position}. {instead}.",
    "values.not_content": "{given} cannot be said to a model: give a text, a part such as dragoman.Blob, a message, or a list of these",
    "values.prompt_of_assistant": "a prompt is what the user says, but a message in it has the role assistant; "
    "put earlier messages in front with set_history, or as history= of a Chat",
    "values.prompt_of_calls": "a prompt is what the user says, but there is a call in it ({calls}), and only the model calls; "
    "give a whole history as history= of a Chat, or with set_history",
    "values.no_schema": "{type} has no JSON Schema ({reason}): use a msgspec Struct, a dataclass, a TypedDict, a pydantic model or a "
    "JSON Schema",
    "values.role_of_model": "The model's own messages have the role assistant",
    "values.role_of_system": "Give instructions as `system`, which is not a message",
    "values.role_of_tool": "A result is a ToolResult in a message of the user",
    "values.role_of_user": "Write user for what a person says, and assistant for what the model said",
    "values.answer_too_long": "stopped: the answer has more than {most:,} characters; its text is kept in the session. If it was "
    "meant, raise answers.max_chars",
    "values.too_many_events": "stopped: the answer came in more than {most:,} pieces; its text is kept in the session. If it was "
    "meant, raise answers.max_events",
    "values.api_message": "message {position}",
    "values.api_part": "part {part} of {where}",
    "values.api_dict": "a dict",
    "values.api_list": "a list",
    "values.api_text": "a text",
    "values.api_text_or_list": "a text or a list of dicts",
    "values.api_data_url": "a data: URL must be data:TYPE;base64,…",
    "values.api_unknown": "{where} is a dict with the keys {keys}, which is no message or part of an API that is read here: write "
    "{{'role': 'user', 'content': '…'}}, {{'role': 'user', 'parts': [{{'text': '…'}}]}} or dragoman.user('…')",
    "values.api_request": "{where} is a whole request or answer: give the messages in its {key!r}, and a system prompt as system=",
    "values.api_key": "{where} has the key {key!r}, which is not read here: leave it out if nothing depends on it",
    "values.api_key_of": "{where} has the key {key!r}, which is not read here: leave it out, or write {known}",
    "values.api_two_kinds": "{where} has both {one!r} and {other!r}: write one of them, or two parts",
    "values.api_type": "{where}: {key!r} must be {expected}, but is {given}",
    "values.api_missing": "{where} lacks {key!r}",
    "values.api_not_json": "{where}: {key!r} cannot be written as JSON ({reason})",
    "values.api_base64": "{where}: the data is not base64 ({reason}): encode it with base64.b64encode, or give the bytes as dragoman.Media",
    "values.api_kind": "{where} is of the type {kind!r}, which is not read here: give texts, images, files, calls and results",
    "values.api_role": "{where} has the role {role!r}, which no message has. {instead}",
    "values.api_call_of_user": "{where} is a call, but the message is the user's: "
    "a call belongs into a message of the role model or assistant",
    "values.media_unknown": 'how these bytes begin does not tell what they are; give their type: Media(data, "audio/wav")',
    "values.file_unknown": 'what {uri} is cannot be told by its ending; give its type: FileRef.of(url, "image/png")',
    "values.file_no_address": "{uri} is no address that a service could fetch; for a file on this machine give pathlib.Path('shot.png')",
    "values.media_no_bytes": "there are no bytes to send: what was given is empty",
    "values.media_not_bytes": "Media holds bytes, but was given {given}; "
    "for a file: pathlib.Path('shot.png'), for an address: dragoman.FileRef.of(url)",
    "values.media_no_file": "{path} is not a regular file: name the image, PDF, sound or video itself",
    "values.media_too_large": "{path} has {size:,} bytes, and at most {most:,} can be sent: make it smaller",
    "values.media_unreadable": "{path} cannot be read: {reason}",
    "values.media_empty": "{path} is empty",
    "values.media_not_media": "{path} is no image, PDF, sound or video; put what a text file says into the prompt as text",
}
