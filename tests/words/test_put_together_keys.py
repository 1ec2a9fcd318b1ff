"""Sentences whose keys are put together are all there, in both languages: a new kind of something cannot be said before it has words."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

import dragoman as dm
from dragoman import words
from sentence_keys import Place, Source

CATALOGUE = Path(words.__file__).parent
FOLDER = Path(dm.__file__).parent
NOT_READ = "testing."
"""Sentences for those who write tests with the library's doubles: in English alone."""


@cache
def source() -> Source:
    """Read when a test asks for it: collecting the tests does not."""
    return Source(FOLDER, skip=lambda path: path == CATALOGUE / "__init__.py" or CATALOGUE in path.parent.parents)


@cache
def places() -> list[Place]:
    return [*source().places()]


def of(module: str, name: str) -> Any:
    """What a module of ours defines, named by the end of its path: it may be moved."""
    found = [each.name for each in source().modules if f".{each.name}".endswith(f".{module}")]
    assert len(found) == 1, f"{module}: {found or 'no such module'}"
    return getattr(import_module(found[0]), name)


def without(values: Iterable[str], *some: str) -> list[str]:
    assert set(some) <= set(values)
    return [each for each in values if each not in some]


def checked_features() -> Iterator[str]:
    """`Check("name", …)`; those of the words for effort have a sentence of their own."""
    module = next(each for each in source().modules if each.name.endswith(".live_checks"))
    return (
        value
        for call in module.calls["Check"]
        for value in source().values(call.args[0])
        if isinstance(value, str) and "effort_" not in value
    )


def listed_commands() -> list[str]:
    return [row.name for row in of("conversation.commands", "COMMANDS") if row.group]


ROWS: Mapping[str, Callable[[], Iterable[Any]]] = {
    "commands.help_{}": listed_commands,
    "commands.more_{}": lambda: [name for name in listed_commands() if words.lookup(f"commands.more_{name}") is not None],
    "context_chosen_{}": lambda: without(of("context_slash", "CHANGES"), "compress", "prune"),  # these two say more
    "context_why_{}": lambda: [*without(get_args_of(of("decide", "PruneReason")), ""), of("choosing", "ASKED")],
    "live_feature_{}": checked_features,
    "policy.sandbox_level_{}": lambda: sandbox_levels(),
    "simulate_{}": lambda: without(of("context_simulate", "POLICIES"), "none"),  # "never", above
    "subagents.about_{}": lambda: [agent.name for agent in of("tasks", "builtin_agents")()],
    "tools.about_{}": lambda: {tool for tools in of("agent_tools", "_TOOLS").values() for tool in tools},
    "tui.sandbox_{}": lambda: sandbox_levels(),
}
"""Where the source alone does not tell which keys there can be: the key with `{}` for what is filled in, and all that is filled in."""


def get_args_of(union: Any) -> list[str]:
    """The texts of a Literal, or of a union of them."""
    return [
        each if isinstance(each, str) else text
        for each in get_args(union)
        for text in ([each] if isinstance(each, str) else get_args_of(each))
    ]


def sandbox_levels() -> list[int]:
    return [0, *of("detection", "KINDS"), of("detection", "SEATBELT"), of("detection", "EXTERNAL")]


# --- the check


def faults(places: Iterable[Place], rows: Mapping[str, Callable[[], Iterable[Any]]], has: Callable[[str, str], bool]) -> list[str]:
    """What is wrong with keys that are put together, each in a sentence that says what to do."""
    found: list[str] = []
    seen: dict[str, list[Place]] = {}
    for place in places:
        seen.setdefault(place.pattern, []).append(place)
    for pattern, group in seen.items():
        where = ", ".join(place.where for place in group)
        if pattern in rows:
            keys = {pattern.replace("{}", str(value)) for value in rows[pattern]()}
        elif any(place.keys is None for place in group):
            found.append(
                f"{where}: nothing tells which keys {pattern!r} can be; give it a Literal or a table of keys, or add a row to ROWS"
            )
            continue
        else:
            keys = {key for place in group for key in place.keys or ()}
        found += [
            f"{where}: {pattern!r} can be {key!r}, which has no sentence in the tables of {language!r}"
            for key in sorted(keys)
            for language in ("en", "zh")
            if not has(key, language)
        ]
    return found + [f"the row {pattern!r} of ROWS is about no call: take it out" for pattern in rows if pattern not in seen]


def is_there(key: str, language: str) -> bool:
    return words.lookup(key, language) is not None or (language != "en" and key.startswith(NOT_READ))


def test_every_key_that_is_put_together_has_a_sentence_in_both_languages() -> None:
    assert len(places()) > 100
    assert faults(places(), ROWS, is_there) == []


def test_a_row_is_only_for_what_the_source_does_not_tell() -> None:
    told = {place.pattern: place.keys for place in places()}
    assert [pattern for pattern in ROWS if told[pattern] is not None and all(is_there(key, "en") for key in told[pattern])] == []


def test_every_sentence_of_the_catalogue_is_said() -> None:
    """A beginning that is used somewhere does not excuse all that begins with it."""
    written = {node.value for module in source().modules for node in ast.walk(module.tree) if isinstance(node, ast.Constant)}
    filled_in = {pattern.replace("{}", str(value)) for pattern, values in ROWS.items() for value in values()}
    said = {*written, *filled_in, *words.ALWAYS_LOADED, *(key for place in places() for key in place.keys or ())}
    said |= {key for key in import_module(f"{words.__name__}.en.viewer").TEXTS if key.startswith("viewer.page_")}  # viewer/test_vendored.py
    tables = [path.stem for path in (CATALOGUE / "en").glob("*.py") if path.stem not in ("__init__", words.REMEDIES)]
    assert {key for table in tables for key in import_module(f"{words.__name__}.en.{table}").TEXTS} - said == set()


# --- that it finds what is missing

PLANTED = {
    "words.py": "def say(key, **values): ...\ndef lookup(key): ...\n",
    "kinds.py": 'from typing import Literal\nKind = Literal["read", "told"]\n',
    "notes.py": """
from __future__ import annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING
from planted.words import lookup, say as told
if TYPE_CHECKING:
    from planted.kinds import Kind
TITLES = {"a": "title_a", "b": "title_b"}

@dataclass
class Note:
    kind: Kind
    colour: str

def by_type(note: Note): return told(f"note_{note.kind}")
def by_loop(notes: list[Note]): return [told(f"loop_{each.kind}") for each in notes]
def by_table(name: str): return told(TITLES[name])
def by_condition(note: Note):
    if note.kind == "told":
        return ""
    return told("rest_" + note.kind)
def by_callers(key: str): return told(f"called_{key}")
def calls(is_late): by_callers("late" if is_late else "early")
def by_nothing(note: Note): return lookup(f"colour_{note.colour}")
def passed_on(keys): return map(told, keys)
""",
}
THERE = {"note_read", "note_told", "loop_read", "loop_told", "title_a", "title_b", "rest_read", "called_late", "called_early"}
PASSED_ON = "passed_on: map(told, keys)"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Place]]:
    folder = tmp_path / "planted"
    folder.mkdir()
    for name, text in {"__init__.py": "", **PLANTED}.items():
        (folder / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield [*Source(folder).places()]
    for name in [each for each in sys.modules if each.partition(".")[0] == "planted"]:
        del sys.modules[name]


def has(*missing: tuple[str, str]) -> Callable[[str, str], bool]:
    return lambda key, language: key in THERE | {"colour_red"} and (key, language) not in missing


def rows(**more: list[str]) -> dict[str, Callable[[], Iterable[str]]]:
    given = {"colour_{}": ["red"], PASSED_ON: [], **more}
    return {pattern: lambda values=values: values for pattern, values in given.items()}


def test_keys_are_found_by_type_loop_table_condition_and_callers(planted: list[Place]) -> None:
    assert {key for place in planted for key in place.keys or ()} == THERE
    assert {place.pattern for place in planted if place.keys is None} == {"colour_{}", PASSED_ON}


@pytest.mark.parametrize("key", sorted(THERE))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_sentence_that_is_missing_is_named_with_its_place(planted: list[Place], key: str, language: str) -> None:
    assert faults(planted, rows(), has()) == []
    (fault,) = faults(planted, rows(), has((key, language)))
    assert fault.startswith("notes.py:")
    assert f"can be {key!r}" in fault
    assert fault.endswith(f"in the tables of {language!r}")


def test_a_place_that_nobody_can_tell_needs_a_row_and_a_row_a_place(planted: list[Place]) -> None:
    assert [fault.partition("; ")[2] for fault in faults(planted, {}, has())] == [
        "give it a Literal or a table of keys, or add a row to ROWS"
    ] * 2
    assert faults(planted, rows(gone_={}), has()) == ["the row 'gone_' of ROWS is about no call: take it out"]  # type: ignore[arg-type]
    assert "can be 'colour_blue'" in faults(planted, rows() | {"colour_{}": lambda: ["red", "blue"]}, has())[0]
