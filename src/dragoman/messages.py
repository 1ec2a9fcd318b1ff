"""Working with messages: from what people write, to text, merged, curated, repaired."""

from dragoman.context.repair import Repaired as Repaired
from dragoman.context.repair import repair as repair
from dragoman.values.messages import Citation as Citation
from dragoman.values.messages import Content as Content
from dragoman.values.messages import Opaque as Opaque
from dragoman.values.messages import PerMessage as PerMessage
from dragoman.values.messages import Role as Role
from dragoman.values.messages import SafetyRating as SafetyRating
from dragoman.values.messages import Source as Source
from dragoman.values.parts import append_to_last_text as append_to_last_text
from dragoman.values.parts import call_in_words as call_in_words
from dragoman.values.parts import check_roles as check_roles
from dragoman.values.parts import curated as curated
from dragoman.values.parts import is_valid as is_valid
from dragoman.values.parts import map_text_parts as map_text_parts
from dragoman.values.parts import merge_assistant_text as merge_assistant_text
from dragoman.values.parts import merge_text as merge_text
from dragoman.values.parts import parse_thought as parse_thought
from dragoman.values.parts import part_to_string as part_to_string
from dragoman.values.parts import request_text as request_text
from dragoman.values.parts import response_text as response_text
from dragoman.values.parts import to_messages as to_messages
from dragoman.values.parts import to_parts as to_parts
