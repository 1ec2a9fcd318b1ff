"""The library: messages given by a caller."""

TEXTS = {
    "values.no_counting": "{name} does not count tokens",
    "values.no_embeddings": "{name} makes no embeddings",
    "values.wrong_role": "Role must be user or assistant, but got {role!r} in message {position}.",
}
