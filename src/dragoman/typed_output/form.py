"""A value in two forms: as its schema says, and as a service is asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from dragoman.base import jsontext

Schema = dict[str, Any]
Change = Callable[[Any], Any]
Way = Literal["to_wire", "from_wire"]

RESULT = "result"
"""The property that holds an answer which is not an object."""
VALUE, KIND = "value", "kind"


class WireForm(NamedTuple):
    """A schema as a service is bound to it. `to_wire` and `from_wire` change a value between the two forms."""

    schema: Schema
    to_wire: Change
    from_wire: Change


def unchanged(schema: Schema) -> WireForm:
    return WireForm(schema, same, same)


def same(value: Any) -> Any:
    return value


def changing(schema: Schema, change: Callable[[Any, Way], Any]) -> WireForm:
    """A form whose parts are changed alike in both directions."""

    def to_wire(value: Any) -> Any:
        return change(value, "to_wire")

    def from_wire(value: Any) -> Any:
        return change(value, "from_wire")

    return WireForm(schema, to_wire, from_wire)


def apply(form: WireForm, way: Way, value: Any) -> Any:
    return form.to_wire(value) if way == "to_wire" else form.from_wire(value)


def json_text(description: str) -> WireForm:
    """Any value, as JSON text."""
    return WireForm({"type": "string", "description": description}, jsontext.dumps, _read_json)


def _read_json(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return jsontext.decode(text)
    except jsontext.NotJSON:
        return text


def wrapped(node: WireForm) -> WireForm:
    """A value that is not an object, in one."""
    schema = {"type": "object", "properties": {RESULT: node.schema}, "required": [RESULT], "additionalProperties": False}

    def wrap(value: Any) -> Any:
        return {RESULT: node.to_wire(value)}

    def unwrap(value: Any) -> Any:
        return node.from_wire(value[RESULT] if isinstance(value, dict) and list(value) == [RESULT] else value)

    return WireForm(schema, wrap, unwrap)


def numbered(number: int, node: WireForm) -> WireForm:
    """One of several forms that could be confused: it says which one it is."""
    properties = {KIND: {"type": "string", "enum": [f"form_{number}"]}, VALUE: node.schema}
    schema = {"type": "object", "properties": properties, "required": [KIND, VALUE], "additionalProperties": False}

    def to_wire(value: Any) -> Any:
        return {KIND: f"form_{number}", VALUE: node.to_wire(value)}

    def from_wire(value: Any) -> Any:
        return node.from_wire(value[VALUE] if isinstance(value, dict) and value.keys() == {KIND, VALUE} else value)

    return WireForm(schema, to_wire, from_wire)


# --- objects ---------------------------------------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A property, and how it is written that it is not given."""

    node: WireForm
    missing: Literal["required", "absent", "null", "default", "list", "extra"] = "required"
    default: Any = None
    named: frozenset[str] = frozenset()
    """Of a field that holds all other properties: those that have a field of their own."""


def object_form(about: Schema, fields: Mapping[str, Field]) -> WireForm:
    required = [name for name, field in fields.items() if field.missing != "absent"]
    properties = {name: field.node.schema for name, field in fields.items()}
    schema: Schema = {**about, "type": "object", "properties": properties, "required": required, "additionalProperties": False}
    if all(field.node.to_wire is same and field.missing in ("required", "absent") for field in fields.values()):
        return WireForm(schema, same, same)

    def to_wire(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        written: dict[str, Any] = {}
        for name, field in fields.items():
            written |= _write_field(name, field, value)
        return written

    def from_wire(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        read = {name: each for name, each in value.items() if name not in fields}
        for name, field in fields.items():
            if name in value:
                read |= _read_field(name, field, value[name])
        return read

    return WireForm(schema, to_wire, from_wire)


def _write_field(name: str, field: Field, value: Mapping[str, Any]) -> dict[str, Any]:
    match field.missing:
        case "extra":
            return {name: field.node.to_wire({key: each for key, each in value.items() if key not in field.named})}
        case "list":
            return {name: [field.node.to_wire(value[name])] if name in value else []}
        case _ if name in value:
            return {name: field.node.to_wire(value[name])}
        case "null":
            return {name: None}
        case "default":
            return {name: field.node.to_wire(field.default)}
        case _:
            return {}


def _read_field(name: str, field: Field, written: Any) -> dict[str, Any]:
    match field.missing:
        case "extra":
            more = field.node.from_wire(written)
            return more if isinstance(more, dict) else {}
        case "list" if isinstance(written, list):
            return {name: field.node.from_wire(written[0])} if written else {}
        case "null" if written is None:
            return {}
        case _:
            return {name: field.node.from_wire(written)}
