"""Plain forms of settings: what one writes first is taken, and equals the long form."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec
import pytest

import dragoman as dm
from dragoman.values.errors import InputError
from dragoman.values.messages import Settings, Thinking


class City(TypedDict):
    name: str


@pytest.mark.parametrize(
    ("given", "thinking"),
    [(True, Thinking()), (False, Thinking("off")), ("high", Thinking("high")), (8000, Thinking(budget_tokens=8000)), (0, Thinking("off"))],
)
def test_thinking_in_a_word_a_number_or_a_bool(given: Any, thinking: Thinking) -> None:
    settings = dm.Settings(thinking=given)
    assert settings == Settings(thinking=thinking)
    assert settings.thinking == thinking
    assert msgspec.json.decode(msgspec.json.encode(settings), type=Settings) == settings
    assert msgspec.structs.replace(Settings(), thinking=given) == settings


def test_a_schema_as_a_dict_or_a_type_is_what_its_text_is() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    text = msgspec.json.encode(schema).decode()
    assert Settings(response_schema=schema) == Settings(response_schema=text)
    assert Settings(response_schema=text).response_schema == text
    assert msgspec.json.decode(Settings(response_schema=City).response_schema)["required"] == ["name"]


@pytest.mark.parametrize("given", ["huge", -1, 1.5, [], {"effort": "high"}])
def test_another_kind_of_thinking_is_refused_in_words(given: Any) -> None:
    with pytest.raises(InputError, match="a budget in tokens, not"):
        Settings(thinking=given)


@pytest.mark.parametrize(("given", "words"), [(5, "JSON text, a dict or a type"), ({"enum": {1j}}, "cannot be written as JSON")])
def test_another_kind_of_schema_is_refused_in_words(given: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Settings(response_schema=given)
