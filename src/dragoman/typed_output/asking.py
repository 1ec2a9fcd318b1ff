"""How one model is asked for an answer of a type, and reading what it wrote.

Where the service can be bound to a schema, it is. Elsewhere the model is given a tool to call with its answer: models that know tools fill
in the arguments of a call better than they write JSON as text. A union of classes is one tool for each. A `str` is what the model says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from dragoman.base import jsontext
from dragoman.typed_output.form import same, unchanged
from dragoman.typed_output.partial_json import NOTHING, complete, without_open_pair
from dragoman.typed_output.wire_form import Inexpressible, Service, WireForm, wire_form
from dragoman.values.contracts import Provider
from dragoman.values.messages import Settings, ToolSpec
from dragoman.values.typed import Misfit, Typed

T = TypeVar("T")

FINAL_ANSWER = "final_answer"
_ABOUT = "Give the final answer. Call it once, when everything else is done; the arguments are the answer."
_SERVICES: Mapping[str, Service] = {
    "openai_chat": "openai",
    "openai_responses": "openai",
    "anthropic": "anthropic",
    "gemini": "gemini",
}


class Reading(NamedTuple, Generic[T]):
    """What a tool or a text becomes: the form it is written in, and the type it is read as."""

    form: WireForm
    kind: Typed[T]

    def value(self, written: Any) -> T:
        """Raises Misfit."""
        return self.kind.convert(self.form.from_wire(written))


class OutputRequest(Generic[T]):
    """How a model is asked. `settings` and `tools` go into the request; `read_text` and `read_call` make a value of what comes back."""

    def __init__(self, whole: Reading[T], calls: Mapping[str, Reading[Any]], is_bound: bool) -> None:
        self._whole = whole
        self._calls = calls
        self.is_bound = is_bound
        """Whether the service is given the schema, so that the answer's text is JSON."""
        self.is_text = not is_bound and not calls
        """Whether the answer is the text itself, whatever it says."""
        self.tools = tuple(ToolSpec.of(name, _ABOUT, each.form.schema, kind="other", read_only=True) for name, each in calls.items())

    def settings(self, settings: Settings) -> Settings:
        if not self.is_bound:
            return settings
        schema = jsontext.dumps(self._whole.form.schema)
        return msgspec.structs.replace(settings, response_mime="application/json", response_schema=schema)

    def read_text(self, text: str) -> T:
        """Raises Misfit."""
        if self.is_text:
            return self._whole.kind.convert(text)
        try:
            return self._whole.value(jsontext.decode(_without_fence(text)))
        except jsontext.NotJSON as error:
            tools = " or ".join(self._calls)
            raise Misfit(f"call {tools} with the answer" if tools else f"the answer is not JSON: {error}") from None

    def read_call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Raises Misfit."""
        return self._calls[name].value(dict(arguments))

    def read_part(self, written: str, call: str = "") -> Any:
        """What an answer, or the arguments of a call, say so far, in lists, dicts and plain values; NOTHING if that is nothing yet."""
        if self.is_text:
            return written or NOTHING
        form, part = self._calls.get(call, self._whole).form, complete(written)
        if form.from_wire is same or part is NOTHING:
            return part
        part = without_open_pair(part)
        return part if part is NOTHING else form.from_wire(part)


def output_request(kind: Typed[T], provider: Provider, model: str, *, has_tools: bool, taken: Collection[str] = ()) -> OutputRequest[T]:
    """The best way to ask this model for a value of this type. `taken` are the names of other tools."""
    if kind.schema == {"type": "string"}:
        return OutputRequest(Reading(unchanged(kind.schema), kind), {}, is_bound=False)
    service = _service(provider, model, has_tools=has_tools)
    if service is not None:
        try:
            return OutputRequest(Reading(wire_form(kind.schema, service), kind), {}, is_bound=True)
        except Inexpressible:
            pass
    members = kind.members or (kind,)
    first = FINAL_ANSWER
    while any(name.startswith(first) for name in taken):
        first += "_"
    names = [first] if len(members) == 1 else [f"{first}_{number}" for number in range(1, len(members) + 1)]
    calls = {name: Reading(wire_form(each.schema, "tool"), each) for name, each in zip(names, members, strict=True)}
    return OutputRequest(Reading(wire_form(kind.schema, "tool"), kind), calls, is_bound=False)


def _service(provider: Provider, model: str, *, has_tools: bool) -> Service | None:
    """The service that can be bound to a schema beside the tools there are; None where a tool does better."""
    profile, deployment = provider.profile(model), provider.deployment
    if deployment is None or not profile.json_schema:
        return None
    if provider.dialect and (has_tools or not deployment.in_process):
        return None  # calls written as text would not fit the schema; our own engine binds any model to one, others need not
    if deployment.protocol == "gemini" and has_tools and not profile.thought_signatures:
        return None  # before Gemini 3: JSON or functions
    return _SERVICES.get(deployment.protocol)


def _without_fence(text: str) -> str:
    """The text without a code fence around all of it."""
    lines = text.strip().splitlines()
    fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text
