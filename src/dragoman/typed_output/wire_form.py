"""A schema as one service can be bound to it, and the way back.

Services understand a part of JSON Schema only. What a service has no words for is written in another form that means the same: a map as a
list of pairs, a tuple as an object with numbered keys, a value of any type as JSON text. `to_wire` and `from_wire` change a value between
the two forms; a value that a model wrote in the plain form all the same passes unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from dragoman.typed_output.apart import differ
from dragoman.typed_output.form import (
    VALUE,
    Field,
    Schema,
    Way,
    WireForm,
    apply,
    changing,
    json_text,
    numbered,
    object_form,
    same,
    unchanged,
    wrapped,
)
from dragoman.typed_output.keywords import describe_rest, split_enum
from dragoman.values.schema import problems

Service = Literal["openai", "anthropic", "gemini", "tool", "plain"]

MORE, KEY, REST = "more", "key", "rest"
_TEXT_OF_JSON = "any JSON value, written as JSON text"
_DEFINITIONS = "#/$defs/"
_ABOUT = ("title", "description")


class Inexpressible(Exception):
    """The service has no words for this schema, in any form."""


class ServiceRules(NamedTuple):
    """What a service asks of a schema."""

    object_root: bool = False
    """The root must be an object."""
    all_required: bool = False
    """Every property must be required."""
    closed: bool = False
    """No maps, no tuples, no values of any type."""
    recursion: Literal["any", "optional", "none"] = "any"
    keywords: frozenset[str] | None = None
    """The words that constrain a value; others go into the description. None: all."""


_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"))
RULES: Mapping[Service, ServiceRules] = {
    "openai": ServiceRules(
        object_root=True, all_required=True, closed=True, keywords=_BOUNDS | {"pattern", "format", "minLength", "maxLength"}
    ),
    "anthropic": ServiceRules(object_root=True, closed=True, recursion="none", keywords=frozenset(("format",))),
    "gemini": ServiceRules(recursion="optional", keywords=frozenset(("format", "minItems", "maxItems", "minimum", "maximum"))),
    "tool": ServiceRules(object_root=True),
    "plain": ServiceRules(),
}


def wire_form(schema: Schema, service: Service) -> WireForm:
    """Raises Inexpressible."""
    rules = RULES[service]
    rewriter = _Rewriter(schema.get("$defs") or {}, rules)
    root = rewriter.rewrite({key: value for key, value in schema.items() if key != "$defs"})
    definitions = {name: node.schema for name, node in rewriter.definitions.items()}
    if rules.object_root and not _is_object(root.schema):
        root = wrapped(root)
    return WireForm({**root.schema, **({"$defs": definitions} if definitions else {})}, root.to_wire, root.from_wire)


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" and not schema.keys() & {"anyOf", "oneOf", "allOf", "$ref"}


class _Rewriter:
    """Rewrites one schema, its definitions included, each once."""

    def __init__(self, definitions: Mapping[str, Schema], rules: ServiceRules) -> None:
        self._originals = definitions
        self._rules = rules
        self.definitions: dict[str, WireForm] = {}
        self._open: list[str] = []
        """The definitions being rewritten; a reference to one of them is recursion."""
        self._optional_since: list[int] = []
        """How many of them were open at each optional property that was entered."""

    def rewrite(self, schema: Any) -> WireForm:
        if not isinstance(schema, dict) or not schema.keys() - {*_ABOUT, "default", "examples"}:
            return self._anything(schema if isinstance(schema, dict) else {})
        if "$ref" in schema:
            return self._reference(schema)
        if "enum" in schema or "const" in schema:
            return unchanged(split_enum(schema))
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._choice(schema, schema[word])
        if "allOf" in schema:
            return self._all_of(schema)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._choice({key: schema[key] for key in _ABOUT if key in schema}, [{**schema, "type": each} for each in kind])
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema)
        if kind == "array" or (kind is None and ("items" in schema or "prefixItems" in schema)):
            return self._array(schema)
        return unchanged(self._leaf(schema))

    def _leaf(self, schema: Schema) -> Schema:
        return describe_rest(schema, self._rules.keywords)

    def _anything(self, schema: Schema) -> WireForm:
        if not self._rules.closed:
            return unchanged(schema)
        return json_text(f"{schema.get('description', '')} ({_TEXT_OF_JSON})".strip())

    # --- references ---

    def _reference(self, schema: Schema) -> WireForm:
        reference = schema["$ref"]
        name = reference.removeprefix(_DEFINITIONS) if isinstance(reference, str) else ""
        if name not in self._originals:
            raise Inexpressible(f"{reference} is not defined")
        if name in self._open:
            self._require_recursion(name)
        elif name not in self.definitions:
            self._open.append(name)
            self.definitions[name] = self.rewrite(self._originals[name])
            self._open.pop()
        written = {"$ref": reference, **{key: schema[key] for key in _ABOUT if key in schema}}
        return changing(written, lambda value, way: apply(self.definitions[name], way, value))

    def _require_recursion(self, name: str) -> None:
        allowed = self._rules.recursion
        since = self._open.index(name)
        if allowed == "none" or (allowed == "optional" and not any(depth > since for depth in self._optional_since)):
            raise Inexpressible(f"{name} contains itself")

    # --- alternatives ---

    def _all_of(self, schema: Schema) -> WireForm:
        parts = schema["allOf"]
        if len(parts) != 1 or not isinstance(parts[0], dict):
            raise Inexpressible("allOf joins several schemas")
        return self.rewrite({**parts[0], **{key: schema[key] for key in _ABOUT if key in schema}})

    def _choice(self, schema: Schema, originals: list[Any]) -> WireForm:
        nodes = [self.rewrite(each) for each in originals]
        about = {key: schema[key] for key in _ABOUT if key in schema}
        if all(node.to_wire is same for node in nodes):
            return unchanged({**about, "anyOf": [node.schema for node in nodes]})
        if not self._are_apart([node.schema for node in nodes]):
            nodes = [numbered(number, node) for number, node in enumerate(nodes, 1)]
        schemas = [node.schema for node in nodes]

        def to_wire(value: Any) -> Any:
            fitting = [node for node, each in zip(nodes, originals, strict=True) if not self._misfit(each, value, self._originals)]
            return fitting[0].to_wire(value) if fitting else value

        def from_wire(value: Any) -> Any:
            written = {name: node.schema for name, node in self.definitions.items()}
            fitting = [node for node in nodes if not self._misfit(node.schema, value, written)]
            return fitting[0].from_wire(value) if fitting else value

        return WireForm({**about, "anyOf": schemas}, to_wire, from_wire)

    @staticmethod
    def _misfit(schema: Any, value: Any, definitions: Mapping[str, Any]) -> bool:
        return bool(problems({**schema, "$defs": definitions} if isinstance(schema, dict) else schema, value))

    def _are_apart(self, schemas: list[Schema]) -> bool:
        """Whether no value fits two of them: their types differ, or they are objects with different constants."""
        resolved = [self._resolve(schema) for schema in schemas]
        if any(node is None for node in resolved):
            return False
        nodes = [node for node in resolved if node is not None]
        return all(differ(one, other) for place, one in enumerate(nodes) for other in nodes[place + 1 :])

    def _resolve(self, schema: Schema) -> Schema | None:
        while "$ref" in schema:
            node = self.definitions.get(schema["$ref"].removeprefix(_DEFINITIONS))
            if node is None:
                return None  # it is being rewritten just now
            schema = node.schema
        return schema

    # --- objects and maps ---

    def _object(self, schema: Schema) -> WireForm:
        properties: dict[str, Any] = schema.get("properties") or {}
        more = schema.get("additionalProperties")
        if not self._rules.closed:
            return self._open_object(schema, properties, more)
        if not properties and isinstance(more, dict):
            return self._map(schema, more)
        if not properties and more is not False and "properties" not in schema:
            return self._anything(schema)
        fields = self._fields(schema, properties)
        if more is True or isinstance(more, dict):
            fields[_free_name(MORE, properties)] = Field(self._map({}, more), "extra", named=frozenset(properties))
        return object_form(self._about_object(schema), fields)

    def _open_object(self, schema: Schema, properties: dict[str, Any], more: Any) -> WireForm:
        """An object as it is, with what is in it rewritten."""
        fields = self._fields(schema, properties)
        extra = self.rewrite(more) if isinstance(more, dict) else None
        rest = {key: value for key, value in schema.items() if key not in ("properties", "additionalProperties", "required")}
        written: Schema = {**self._leaf({**rest, "type": "object"})}
        if properties:
            written["properties"] = {name: field.node.schema for name, field in fields.items()}
        if required := list(schema.get("required", ())):
            written["required"] = required
        if more is not None:
            written["additionalProperties"] = extra.schema if extra else more
        if all(field.node.to_wire is same for field in fields.values()) and (extra is None or extra.to_wire is same):
            return unchanged(written)

        def change(value: Any, way: Way) -> Any:
            if not isinstance(value, dict):
                return value
            nodes = {name: fields[name].node if name in fields else extra for name in value}
            return {name: apply(node, way, each) if (node := nodes[name]) else each for name, each in value.items()}

        return changing(written, change)

    def _about_object(self, schema: Schema) -> Schema:
        left = {key: value for key, value in schema.items() if key not in ("properties", "required", "additionalProperties", "type")}
        return {key: value for key, value in describe_rest(left, frozenset()).items() if key in _ABOUT}

    def _fields(self, schema: Schema, properties: Mapping[str, Any]) -> dict[str, Field]:
        required = set(schema.get("required") or ())
        return {name: self._field(each, is_required=name in required) for name, each in properties.items()}

    def _field(self, schema: Any, *, is_required: bool) -> Field:
        if is_required:
            return Field(self.rewrite(schema))
        self._optional_since.append(len(self._open))
        node = self.rewrite(schema)
        self._optional_since.pop()
        if not self._rules.all_required:
            return Field(node, "absent")
        if self._misfit(schema, None, self._originals):
            return Field(WireForm({"anyOf": [node.schema, {"type": "null"}]}, node.to_wire, node.from_wire), "null")
        if isinstance(schema, dict) and "default" in schema:
            return Field(node, "default", schema["default"])
        items = {"type": "array", "items": node.schema, "description": "empty if it is not given"}
        return Field(WireForm(items, node.to_wire, node.from_wire), "list")

    def _map(self, schema: Schema, values: Any) -> WireForm:
        node = self.rewrite(values)
        pair = {"type": "object", "properties": {KEY: {"type": "string"}, VALUE: node.schema}, "required": [KEY, VALUE]}
        about = self._about_object({key: value for key, value in schema.items() if key != "propertyNames"})
        written = {**about, "type": "array", "items": {**pair, "additionalProperties": False}}

        def to_wire(value: Any) -> Any:
            return [{KEY: key, VALUE: node.to_wire(each)} for key, each in value.items()] if isinstance(value, dict) else value

        def from_wire(value: Any) -> Any:
            if isinstance(value, dict):  # written as a plain object all the same
                return {key: node.from_wire(each) for key, each in value.items()}
            if not isinstance(value, list) or not all(isinstance(each, dict) and each.keys() == {KEY, VALUE} for each in value):
                return value
            return {each[KEY]: node.from_wire(each[VALUE]) for each in value}

        return WireForm(written, to_wire, from_wire)

    # --- arrays and tuples ---

    def _array(self, schema: Schema) -> WireForm:
        places = schema.get("prefixItems")
        if places and self._rules.closed:
            return self._tuple(schema, places)
        about = {key: value for key, value in schema.items() if key not in ("items", "prefixItems")}
        items = self.rewrite(schema["items"]) if isinstance(schema.get("items"), dict) else None
        if items is None and self._rules.closed:
            items = self._anything({})
        nodes = [self.rewrite(place) for place in places or ()]
        written = {**self._leaf({**about, "type": "array"})}
        if nodes:
            written["prefixItems"] = [node.schema for node in nodes]
        if items is not None or "items" in schema:
            written["items"] = items.schema if items is not None else schema["items"]
        if all(node.to_wire is same for node in (*nodes, *((items,) if items else ()))):
            return unchanged(written)
        rest = items or unchanged({})

        def change(value: Any, way: Way) -> Any:
            if not isinstance(value, list):
                return value
            return [apply(nodes[place] if place < len(nodes) else rest, way, each) for place, each in enumerate(value)]

        return changing(written, change)

    def _tuple(self, schema: Schema, places: list[Any]) -> WireForm:
        """A tuple as an object with numbered keys; what may follow the last place stands in a list."""
        least = schema.get("minItems", len(places))
        fields = {f"item_{number}": self._field(place, is_required=number <= least) for number, place in enumerate(places, 1)}
        has_rest = isinstance(schema.get("items"), dict) and schema.get("maxItems") != len(places)
        names = list(fields)
        about = self._about_object(
            {key: value for key, value in schema.items() if key not in ("prefixItems", "items", "minItems", "maxItems")}
        )
        if has_rest:
            fields[REST] = Field(self._array({"type": "array", "items": schema["items"]}))
        form = object_form(about, fields)

        def to_wire(value: Any) -> Any:
            if not isinstance(value, list):
                return value
            named = dict(zip(names, value, strict=False))
            return form.to_wire({**named, REST: value[len(names) :]} if has_rest else named)

        def from_wire(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            read = form.from_wire(value)
            return [read[name] for name in names if name in read] + list(read.get(REST, ()))

        return WireForm(form.schema, to_wire, from_wire)


def _free_name(wanted: str, taken: Mapping[str, Any]) -> str:
    while wanted in taken:
        wanted += "_"
    return wanted
