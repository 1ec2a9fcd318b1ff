"""Settings that a service refuses and that can be left out: which one an error names, and a body without it.

Only what an answer can do without: sampling, how much to think, what is told of it, hints for the cache. Never the prompt, the tools, the
model, a limit, a schema or a forced call: without those it would be another question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from dragoman.values.errors import BadRequest, ContextOverflow
from dragoman.values.messages import Request

MAX_LEFT_OUT = 4
"""How many fields are left out of one request because of errors. Each refusal may name another one."""

_CONFIG = "generationConfig"
_THINKING_CONFIG = f"{_CONFIG}.thinkingConfig"
# How services call a field, and the fields meant, the narrowest first. Names may be written as `a_b`, `aB` or "a b".
_SAMPLING: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\btemperature\b", ("temperature", f"{_CONFIG}.temperature")),
    (r"\btop.?p\b", ("top_p", f"{_CONFIG}.topP")),
    (r"\btop.?k\b", ("top_k", f"{_CONFIG}.topK")),
    (r"\bprompt.?cache.?key\b", ("prompt_cache_key",)),
    (r"\bcache.?control\b", ("cache_control",)),
    (r"\bstream.?options\b|\binclude.?usage\b", ("stream_options",)),
    (r"\bparallel.?tool.?calls\b", ("parallel_tool_calls",)),
    (r"\binclude.?server.?side.?tool.?invocations\b", ("toolConfig.includeServerSideToolInvocations",)),
    (r"\bencrypted.?content\b|^include\b|'include'", ("include",)),
    (r"^stream$|\bverified to stream\b", ("stream",)),
)
_THINKING: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"\breasoning.summar(y|ies)\b", ("reasoning.summary",)),
    (r"\bblock.?binding\b", ("thinking.block_binding",)),
    (r"\bclear.?thinking\b", ("thinking.clear_thinking",)),
    (r"\bthinking\.\S*display\b", ("thinking.display",)),
    (r"\binclude.?thoughts\b", (f"{_THINKING_CONFIG}.includeThoughts",)),
    (r"\bthinking.?level\b", (f"{_THINKING_CONFIG}.thinkingLevel",)),
    (r"\bbudget\b|\bthinking.?budget\b", ("thinking_budget", f"{_THINKING_CONFIG}.thinkingBudget")),
    (r"effort\b", ("reasoning_effort", "reasoning.effort", "output_config.effort")),
    (r"\bchat.?template.?kwargs\b", ("chat_template_kwargs",)),
    (
        r"thinking|reasoning",
        ("thinking", "enable_thinking", "reasoning", "reasoning_effort", "chat_template_kwargs", _THINKING_CONFIG),
    ),
)
OMITTABLE = frozenset(field for _, fields in (*_SAMPLING, *_THINKING) for field in fields)
"""Every field that may be left out."""

# A value out of range is the user's to mend, so it does not count; how our efforts are called is not, so that does.
_UNSUPPORTED = (
    r"(?i)\bnot (be |currently |yet )?(supported|permitted|allowed|available|accepted)|\bun(supported|known|recogni[sz]ed|expected)\b|"
    r"\bdoes(n't| not) support|\bcannot find field|\bmust be verified|\bdeprecated|\bextra (inputs|fields)|"
    r"\bonly .{1,40} (is|are) (allowed|supported)|\bisn't supported"
)
_BAD_VALUE = r"(?i)\bmust be\b|\bshould be\b|\binvalid\b|\bsupported values|\brestricted to\b|\bexpected one of\b"
_CONTENT = r"^(messages|input|contents|tools|system|instructions|model|text|response_format|tool_choice|max_\w+)\b"
_IN_CONTENT = r"(?i)\b(messages|input|contents|tools)\.?\[?\d|\btool.?(choice|call)|\bschema\b|\bresponse.?format\b|\bjson mode\b"
_GOOGLE_NAME = r"Unknown name \\?\"(\w+)\\?\"(?: at '([\w.\[\]]+)')?"


def without_fields(tail: Mapping[str, object], omit: Sequence[str]) -> dict[str, object]:
    """The fields of a body without the omitted ones. An object that becomes empty goes too."""
    left = dict(tail)
    for field in omit:
        if field in OMITTABLE:
            left = _without(left, field.split("."))
    if "stream" in omit:
        left.pop("stream_options", None)  # refused without `stream`
    return left


def _without(fields: dict[str, object], steps: Sequence[str]) -> dict[str, object]:
    first, *rest = steps
    inner = fields.get(first)
    if rest and not isinstance(inner, dict):
        return fields
    left = _without(inner, rest) if rest and isinstance(inner, dict) else {}
    return {key: left if key == first else value for key, value in fields.items() if key != first or left}


def fields_named(error: BadRequest) -> Iterator[str]:
    """The fields that an error may mean and that can be left out, the likeliest first."""
    if isinstance(error, ContextOverflow) or error.status not in (400, 422):
        return
    named, words = _where(error), error.message
    if re.search(_CONTENT, named) or (not error.field and re.search(_IN_CONTENT, words)):
        return
    is_unsupported = re.search(_UNSUPPORTED, words)
    if is_unsupported:
        yield from _matching(_SAMPLING, named)
    if is_unsupported or re.search(_BAD_VALUE, words):
        yield from _matching(_THINKING, named)


def _where(error: BadRequest) -> str:
    """The field as the service names it, or else all its words."""
    if found := re.search(_GOOGLE_NAME, error.message):
        return f"{found[2] or ''}.{found[1]}".lstrip(".")
    return error.field or error.message


def _matching(table: tuple[tuple[str, tuple[str, ...]], ...], named: str) -> Iterator[str]:
    for pattern, fields in table:
        if re.search(pattern, named, re.IGNORECASE):
            yield from fields


class Omitting:
    """One request on its way: what is left out of it, and which of that is news to the sender."""

    def __init__(self, request: Request, refused: dict[str, dict[str, str]], body: Callable[[Request], bytes]) -> None:
        """`refused` has what the service refused so far, by model, with its words: all requests of a provider share it."""
        self.request = request
        self.news: dict[str, str] = {}
        """Fields that are left out though the request did not say so, with the reason."""
        self._refused = refused
        self._body = body
        self._tries = 0
        for field, reason in dict(refused.get(request.model, {})).items():
            self._try_without(field, reason)

    def leave_out(self, error: BadRequest) -> bool:
        """Leave out what the error names. False if it names nothing that was sent and can be left out."""
        self._tries += 1
        reason = error.message.removesuffix(f" [param {error.field}]")  # who is told of it is told the field too
        return self._tries <= MAX_LEFT_OUT and any(self._try_without(field, reason) for field in fields_named(error))

    def keep(self) -> None:
        """The service has taken the request: later ones begin without what it refused."""
        if self.news:
            self._refused.setdefault(self.request.model, {}).update(self.news)

    def _try_without(self, field: str, reason: str) -> bool:
        if field in self.request.omit:
            return False
        without = msgspec.structs.replace(self.request, omit=(*self.request.omit, field))
        if self._body(without) == self._body(self.request):
            return False  # it was not sent
        self.request = without
        self.news[field] = reason
        return True
