"""Plain forms of settings: a bool, a word or a number for thinking, a dict or a type for a schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.base import jsontext
from dragoman.values.errors import InputError, shown
from dragoman.words import say


def read_thinking(given: object, efforts: Sequence[str]) -> dict[str, Any]:
    """The fields of Thinking. True and False turn it on and off, a word is the effort, a number the budget in tokens. Raises InputError for
    anything else."""
    match given:
        case bool():
            return {} if given else {"effort": "off"}
        case int() if given >= 0:
            return {"budget_tokens": given} if given else {"effort": "off"}
        case str() if given in efforts:
            return {"effort": given}
        case _:
            raise InputError(say("values.thinking_wrong", given=shown(given), efforts=", ".join(efforts)))


def read_schema(given: object) -> str:
    """The schema as JSON text: of a dict, or of a type. Raises InputError for anything else."""
    if isinstance(given, Mapping):
        try:
            return jsontext.dumps(dict(given))
        except (TypeError, ValueError) as error:
            raise InputError(say("values.schema_not_json", reason=error)) from error
    if isinstance(given, type):
        from dragoman.values.typed import typed

        return jsontext.dumps(typed(given).schema)
    raise InputError(say("values.schema_wrong", given=shown(given)))
