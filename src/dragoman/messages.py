"""Working with messages: from what people write, to text, merged, curated, repaired."""

from dragoman.context.repair import Repaired, repair
from dragoman.values.messages import Citation, Content, Opaque, PerMessage, Role, SafetyRating, Source
from dragoman.values.parts import (
    append_to_last_text,
    call_in_words,
    check_roles,
    curated,
    is_valid,
    map_text_parts,
    merge_assistant_text,
    merge_text,
    parse_thought,
    part_to_string,
    request_text,
    response_text,
    to_messages,
    to_parts,
)

__all__ = [
    "Citation",
    "Content",
    "Opaque",
    "PerMessage",
    "Repaired",
    "Role",
    "SafetyRating",
    "Source",
    "append_to_last_text",
    "call_in_words",
    "check_roles",
    "curated",
    "is_valid",
    "map_text_parts",
    "merge_assistant_text",
    "merge_text",
    "parse_thought",
    "part_to_string",
    "repair",
    "request_text",
    "response_text",
    "to_messages",
    "to_parts",
]
