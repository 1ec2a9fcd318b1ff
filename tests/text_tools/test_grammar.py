"""What a grammar allows, the reader reads: answers are drawn from the grammar at random and must be calls that fit."""

from __future__ import annotations

import random
from typing import Any, assert_never

import pytest

from dragoman.text_tools import dialects, grammar
from dragoman.text_tools.gbnf import Alt, Chars, Lit, Node, Ref, Rep, Seq
from dragoman.values.schema import problems
from text_tools.reading import TOOLS, read

SCHEMAS = {tool["name"]: tool["parameters"] for tool in TOOLS}
SAFE = "abc XYZ09_é"


def drawn(node: Node, rules: dict[str, Node], rng: random.Random, depth: int = 0) -> str:
    match node:
        case Lit(text):
            return text
        case Chars(chars):
            return _character(chars, rng)
        case Ref(rule):
            return drawn(rules[rule], rules, rng, depth + 1)
        case Seq(parts):
            return "".join(drawn(part, rules, rng, depth + 1) for part in parts)
        case Alt(parts):
            return drawn(parts[0] if depth > 24 else rng.choice(parts), rules, rng, depth + 1)
        case Rep(part, least, most):
            top = least if depth > 24 else min(most if most is not None else least + 3, least + 3)
            return "".join(drawn(part, rules, rng, depth + 1) for _ in range(rng.randint(least, top)))
        case _:
            assert_never(node)


def _character(chars: str, rng: random.Random) -> str:
    match chars:
        case "[0-9]":
            return rng.choice("0123456789")
        case "[1-9]":
            return rng.choice("123456789")
        case _ if chars.startswith("[^"):
            return rng.choice(SAFE)
        case _:
            return rng.choice(["n", '"', "\\", "t"])


@pytest.mark.parametrize("dialect", dialects())
def test_what_the_grammar_allows_is_read_as_calls_that_fit(dialect: str) -> None:
    rules: dict[str, Any] = grammar(TOOLS, dialect).rules
    rng = random.Random(3)
    for _ in range(60):
        text = drawn(rules["root"], rules, rng)
        parsed, _ = read([text], TOOLS, dialect=dialect)
        assert parsed.calls, text
        assert parsed.rejected == (), text
        for call in parsed.calls:
            assert problems(SCHEMAS[call.name], call.args) == [], text


def test_it_is_written_as_servers_read_it() -> None:
    written = grammar(TOOLS, "hermes").gbnf
    assert written.startswith('root ::= (call ("\\n" call){0,7})\ncall ::= call-0 | call-1 | call-2\n')
    assert 'call-2 ::= "<tool_call>\\n" ("{\\"name\\": \\"now\\", \\"arguments\\": " "{}" "}") "\\n</tool_call>"' in written
    for line in written.strip().splitlines():
        assert " ::= " in line


def test_without_tools_there_is_no_grammar() -> None:
    with pytest.raises(ValueError, match="needs tools"):
        grammar([], "hermes")
