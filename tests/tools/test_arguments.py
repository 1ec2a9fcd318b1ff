"""Arguments as a model writes them: read, or refused in words, whatever they are."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.tools.arguments import read_arguments
from dragoman.values.messages import ToolSpec

ANY = ToolSpec("t", "")
names = st.sampled_from(["a", "b", "a:", '"', "\\", ""])
plain = st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.sampled_from('ab:"\\{}é'), max_size=5)


def written(pairs: list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)} : {value}" for name, value in pairs) + "}"


texts = st.recursive(
    plain.map(json.dumps),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")
        | st.lists(st.tuples(names, inner), max_size=3).map(written)
    ),
    max_leaves=8,
)


class Twice(Exception):
    pass


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise Twice
    return dict(pairs)


@given(text=st.lists(st.tuples(names, texts), max_size=4).map(written))
def test_an_object_is_read_unless_a_field_stands_twice(text: str) -> None:
    """Two fields of one name, anywhere, are found; colons and braces in strings are none. The oracle is the standard library's reader."""
    args, problem = read_arguments(ANY, text)
    try:
        expected = json.loads(text, object_pairs_hook=once)
    except Twice:
        assert "the same field twice" in problem
    else:
        assert (args, problem) == (expected, "")


@given(text=st.text() | st.text(st.sampled_from('{}[]":,\\u0d8 \ud83d1eE+-.NaInfinity'), max_size=30))
def test_no_text_makes_it_raise(text: str) -> None:
    args, problem = read_arguments(ANY, text)
    assert problem.startswith("t was not run: ") or (problem == "" and isinstance(args, dict))
    json.dumps(args, ensure_ascii=False).encode()  # no half of a surrogate pair gets through
