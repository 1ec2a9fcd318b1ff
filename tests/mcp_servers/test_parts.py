"""The parts of MCP servers: schemas that are anything, results of every kind, questions to the user, rules, and our own file."""

from __future__ import annotations

import asyncio
import os
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from destinations import MAIN, connection, violation_in
from dragoman.app.mcp_file import ServerEntry, add_entry, remove_entry
from dragoman.base import jsontext
from dragoman.mcp_client.asking import asks_by
from dragoman.mcp_client.contracts import CallResult, Elicitation, Elicited
from dragoman.mcp_client.results import output_of
from dragoman.mcp_client.schemas import problems_of, tame
from dragoman.policy.claude_rules import read_claude
from dragoman.policy.rules import parse_rule
from dragoman.policy.tool_rules import fits_call, fits_server
from dragoman.values.blobs import MemoryBlobs
from dragoman.values.calls import Intent
from dragoman.values.errors import InputError
from dragoman.values.messages import Blob, Request, Text, ToolSpec, user

# --- schemas

WORDS = (
    "type",
    "properties",
    "required",
    "items",
    "anyOf",
    "allOf",
    "$ref",
    "$defs",
    "enum",
    "description",
    "minimum",
    "additionalProperties",
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(("string", "object", "STRING", "#/$defs/a", "https://x/y", "a b")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
        | st.dictionaries(st.sampled_from(("a", "b c", "ü")), inner, max_size=2)
    ),
    max_leaves=15,
)


@pytest.mark.parametrize("where", MAIN)
@given(schema=anything)
def test_whatever_a_server_calls_a_schema_a_request_is_taken(where: str, schema: Any) -> None:
    tamed, _ = tame(schema)
    provider = connection(where)
    request = Request(provider.model, (user("hi"),), "", (ToolSpec.of("mcp__x__y", "Does y.", tamed),))
    found = violation_in(provider, provider.prepare(request).body)
    assert found is None, found


@given(schema=anything)
def test_a_tamed_schema_is_not_tamed_further(schema: Any) -> None:
    once, _ = tame(schema)
    assert tame(once)[0] == once


def test_a_plain_schema_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "required": ["a"], "additionalProperties": False}
    assert tame(schema) == (schema, "")
    huge = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "x" * 100} for n in range(2_000)}}
    assert "too large" in tame(huge)[1]


def test_arguments_are_checked_by_2020_12_and_nothing_is_fetched() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False, "dependentRequired": {"a": ["b"]}}
    assert problems_of(schema, {}) == []
    assert problems_of(schema, {"c": 1}), "our own check does not know this word"
    assert problems_of({"$ref": "https://example.org/schema"}, {"c": 1}) == [], "the server has the last word"
    assert problems_of({"type": 7}, {"c": 1}) == []
    assert problems_of({"properties": {"a": {"pattern": "(a+)+$"}}}, {"a": "a" * 60 + "!"}), "and no pattern takes long"


# --- results


def shown(result: CallResult) -> list[Any]:
    blobs = MemoryBlobs()
    return [part.text if isinstance(part, Text) else part for part in output_of(result, blobs.put).content]


def test_results_of_every_kind() -> None:
    assert shown(CallResult(({"type": "text", "text": "a"}, {"type": "text", "text": "b"}))) == ["a", "\nb"]
    [image] = shown(CallResult(({"type": "image", "data": "R0lGODlh", "mimeType": "image/gif"},)))
    assert isinstance(image, Blob)
    assert (image.mime, image.size) == ("image/gif", 6)
    [sound] = shown(CallResult(({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},)))
    assert sound.mime == "audio/wav"
    assert shown(CallResult((), {"a": 1})) == ['{"a":1}']
    assert shown(CallResult(({"type": "text", "text": "said"},), {"a": 1})) == ["said"]
    [link] = shown(CallResult(({"type": "resource_link", "uri": "x://y", "name": "n", "mimeType": "text/plain"},)))
    assert link == "[resource x://y] n (text/plain)"
    assert shown(CallResult(({"type": "resource", "resource": {"uri": "x://y", "text": "t"}},))) == ["[x://y]\nt"]
    assert output_of(CallResult(({"type": "text", "text": "no"},), is_error=True), MemoryBlobs().put).is_error


@given(
    block=st.dictionaries(
        st.sampled_from(("type", "text", "data", "resource", "uri")), anything | st.sampled_from(("text", "image", "resource"))
    )
)
def test_no_block_breaks_a_result(block: dict[str, Any]) -> None:
    output_of(CallResult((block,)), MemoryBlobs().put)


# --- questions


def asked(question: Elicitation, *answers: str) -> tuple[Elicited, list[str]]:
    left, heard = list(answers), list[str]()

    async def ask(words: str, choices: Sequence[str]) -> str:
        heard.append(words)
        return left.pop(0) if left else ""

    return asyncio.run(_ask(asks_by(ask, "harbour")(question))), heard


async def _ask(answer: Any) -> Elicited:
    return await answer


FORM = {
    "type": "object",
    "properties": {
        "berth": {"type": "integer", "title": "Berth"},
        "flag": {"type": "string", "enum": ["red", "green"]},
        "night": {"type": "boolean"},
    },
    "required": ["berth"],
}


def test_a_form_is_asked_field_by_field() -> None:
    elicited, heard = asked(Elicitation("Which?", FORM), "answer", "seven", "7", "green", "yes")
    assert elicited == Elicited("accept", {"berth": 7, "flag": "green", "night": True})
    assert "harbour" in heard[0], "the user is told who asks"
    assert asked(Elicitation("Which?", FORM), "decline")[0] == Elicited("decline")
    assert asked(Elicitation("Which?", FORM), "answer", "7")[0] == Elicited("accept", {"berth": 7}), "optional fields may stay empty"
    assert asked(Elicitation("Which?", FORM), "answer")[0] == Elicited("cancel")
    assert asked(Elicitation("Which?", FORM))[0] == Elicited("cancel")


def test_a_page_is_shown_and_not_opened() -> None:
    elicited, heard = asked(Elicitation("Sign in", url="https://example.org/x"), "I have done it")
    assert elicited == Elicited("accept")
    assert "https://example.org/x" in heard[0]
    assert asked(Elicitation("Sign in", url="https://example.org/x"), "decline")[0] == Elicited("decline")


# --- rules


@pytest.mark.parametrize(
    ("rule", "name", "fits"),
    [
        ("mcp__a__tide", "mcp__a__tide", True),
        ("mcp__a__tide", "mcp__a__tides", False),
        ("mcp__a", "mcp__a__tide", True),
        ("mcp__a", "mcp__ab__tide", False),
        ("mcp__a__*", "mcp__a__tide", True),
        ("mcp__a__*", "mcp__b__tide", False),
        ("mcp__a__get_*", "mcp__a__get_x", True),
        ("mcp__a.b__x", "mcp__a_b__x", True),
        ("mcp__*", "read_file", False),
        (f"mcp__a__{'x' * 80}", f"mcp__a__{'x' * 47}_01234567", True),
    ],
)
def test_rules_name_servers_tools_and_patterns(rule: str, name: str, fits: bool) -> None:
    spec = ToolSpec(name, "")
    assert fits_call(parse_rule(rule, "allow"), spec, Intent(), "") is fits
    assert fits_server(rule, name) is fits or not name.startswith("mcp__")


def test_rules_of_claude_code_about_servers_are_read() -> None:
    settings = {"permissions": {"allow": ["mcp__a__*", "mcp__b"], "deny": ["mcp__a__delete"]}}
    read = read_claude(jsontext.dumps(settings), "/x/settings.json", "user")
    assert [(rule.decision, rule.tool) for rule in read.rules] == [("allow", "mcp__a__*"), ("allow", "mcp__b"), ("deny", "mcp__a__delete")]
    assert read.problems == ()


# --- the file

texts = st.text(max_size=12)
entries = st.builds(
    ServerEntry,
    command=st.text(min_size=1, max_size=12),
    args=st.lists(texts, max_size=3).map(tuple),
    env=st.dictionaries(st.text(min_size=1, max_size=8), texts, max_size=3),
)


@given(entry=entries, before=st.sampled_from(("", 'model = "x"', "# mine\n[mcp.servers.other]\ncommand = 'y'\n\n[ui]\nmode = 'plain'\n")))
def test_what_is_added_can_be_read_and_removed(entry: ServerEntry, before: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_text(before)
    add_entry(str(path), "harbour", entry)
    added = tomllib.loads(path.read_text(encoding="utf-8"))["mcp"]["servers"]["harbour"]
    assert added.get("env", {}) == entry.env
    assert (added["command"], tuple(added.get("args", ()))) == (entry.command, entry.args)
    with pytest.raises(InputError):
        add_entry(str(path), "harbour", entry)
    remove_entry(str(path), "harbour")
    assert tomllib.loads(path.read_text(encoding="utf-8")) == tomllib.loads(before)


def test_a_project_s_file_that_is_a_link_out_is_left_alone(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside.toml"
    (work / ".dragoman").mkdir(parents=True)
    outside.write_text('[mcp.servers.a]\ncommand = "x"\n')
    path = work / ".dragoman" / "config.toml"
    path.symlink_to(outside)
    for change in (
        lambda: add_entry(str(path), "b", ServerEntry("y"), within=str(work)),
        lambda: remove_entry(str(path), "a", within=str(work)),
    ):
        with pytest.raises(InputError, match="outside the workspace"):
            change()
    assert outside.read_text() == '[mcp.servers.a]\ncommand = "x"\n'


def test_servers_that_are_added_at_the_same_time_are_all_there(tmp_path: Path) -> None:
    """And nothing but the file lies in the folder, which may be a project's."""
    path = tmp_path / ".dragoman" / "config.toml"
    names = {f"s{number}" for number in range(16)}
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(lambda name: add_entry(str(path), name, ServerEntry("x")), names))
    assert set(tomllib.loads(path.read_text(encoding="utf-8"))["mcp"]["servers"]) == names
    assert os.listdir(path.parent) == ["config.toml"]


def test_a_file_that_is_not_plain_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('mcp = { servers = { a = { command = "x" } } }\n')
    for change in (lambda: add_entry(str(path), "b", ServerEntry("y")), lambda: remove_entry(str(path), "a")):
        with pytest.raises(InputError):
            change()
    assert path.read_text() == 'mcp = { servers = { a = { command = "x" } } }\n'
