"""The official schema of the protocol's stable version: is a message what it says, and has it no key that the schema does not know?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema

from node_parts import INSTALLED

SCHEMA = INSTALLED / "@agentclientprotocol" / "sdk" / "schema" / "v1" / "schema.json"
OUR_OWN = {"session/set_model", "_session/steering"}
"""Not of the stable version: the one some clients still call, the other an extension."""
found: list[str] = []
"""What was wrong with messages so far. Threads that read cannot fail a test, so each test looks here."""


@cache
def schema() -> Mapping[str, Any]:
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


@cache
def kind_of(method: str, is_answer: bool) -> str:
    """The name of the definition of a method's parameters, or of its result."""
    ending = "Response" if is_answer else ("Request", "Notification")
    return next(name for name, each in schema()["$defs"].items() if each.get("x-method") == method and name.endswith(ending))


def check_message(message: Mapping[str, Any], answered: str | None) -> None:
    """`answered`: the method that it is the result of."""
    if not SCHEMA.exists():
        return
    if "method" in message:
        found.extend(problems(kind_of(message["method"], False), message["params"]))
    elif "error" in message:
        found.extend(problems("Error", message["error"]))
    elif answered is not None and answered not in OUR_OWN:
        found.extend(problems(kind_of(answered, True), message["result"]))


def problems(name: str, value: Any) -> Iterator[str]:
    validator = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schema()["$defs"]})
    for error in validator.iter_errors(value):
        yield f"{name}: {error.json_path}: {error.message[:300]}"
    for path in unknown_keys(schema()["$defs"][name], value, name):
        yield f"{path} is not a key of the schema"


def unknown_keys(rule: Any, value: Any, path: str) -> Iterator[str]:
    """Keys that no part of the rule has among its properties. The schema lets any key pass; clients drop or refuse them."""
    rules = [*_fitting(rule, value)]
    if isinstance(value, dict):
        known: dict[str, list[Any]] = {}
        for each in rules:
            for key, inner in each.get("properties", {}).items():
                known.setdefault(key, []).append(inner)
        is_open = not known or any(each.get("additionalProperties") not in (None, False) for each in rules)
        for key, item in value.items():
            if key in known:
                yield from unknown_keys({"allOf": known[key]}, item, f"{path}.{key}")
            elif not is_open:
                yield f"{path}.{key}"
    elif isinstance(value, list):
        inner = [each["items"] for each in rules if "items" in each]
        for index, item in enumerate(value):
            yield from unknown_keys({"allOf": inner}, item, f"{path}[{index}]")


def _fitting(rule: Any, value: Any) -> Iterator[Mapping[str, Any]]:
    """The parts of a rule that a value falls under."""
    if not isinstance(rule, dict):
        return
    if "$ref" in rule:
        yield from _fitting(schema()["$defs"][rule["$ref"].rpartition("/")[2]], value)
    yield rule
    for each in rule.get("allOf", ()):
        yield from _fitting(each, value)
    for each in (*rule.get("oneOf", ()), *rule.get("anyOf", ())):
        whole = {**each, "$defs": schema()["$defs"]}
        if jsonschema.Draft202012Validator(whole).is_valid(value):
            yield from _fitting(each, value)
