"""The library: messages given by a caller."""

TEXTS = {
    "values.or": " or ",
    "values.no_counting": "{name} does not count tokens",
    "values.no_embeddings": "{name} makes no embeddings",
    "values.wrong_role": "Role must be user or assistant, but got {role!r} in message {position}. {instead}.",
    "values.not_content": "{given} cannot be said to a model: give a text, a part such as dragoman.Blob, a message, or a list of these",
    "values.prompt_of_assistant": "a prompt is what the user says, but a message in it has the role assistant; put earlier messages into a "
    "History and give it to the agent (session=)",
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
}
