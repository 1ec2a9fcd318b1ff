"""Everything the program says is in words.py, and everything there is said somewhere."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.base import words
from dragoman.cli.arguments import COMMANDS
from dragoman.cli.help_texts import help_for

SOURCE = Path(words.__file__).parent.parent
MODULES = sorted(path for room in ("app", "cli") for path in (SOURCE / room).glob("*.py"))
PLACES = ("words.py", "help_texts.py")


def said(path: Path) -> Iterator[tuple[str, set[str]]]:
    """Every `say("key", name=…)` in a module, with the names of its values."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "say" and node.args:
            for key in keys_in(node.args[0]):
                yield key, {keyword.arg or "" for keyword in node.keywords}


def keys_in(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from keys_in(node.body)
        yield from keys_in(node.orelse)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_what_is_said_has_an_english_text_with_the_same_values(path: Path) -> None:
    for key, values in said(path):
        assert key in words.ENGLISH, f"{path.name} says {key!r}, which words.py does not know"
        wanted = {name for _, name, _, _ in string.Formatter().parse(words.ENGLISH[key]) if name}
        assert wanted <= values, f"{path.name}: {key!r} needs {wanted - values}"


def test_nothing_in_words_is_said_nowhere() -> None:
    others = [ast.parse(path.read_text(encoding="utf-8")) for path in MODULES if path.name not in PLACES]
    literals = {node.value for tree in others for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    # Some keys are put together from a prefix and a word: say(f"mode_{mode}").
    everything = [*others, ast.parse(Path(words.__file__).read_text(encoding="utf-8"))]
    joined = [node.values[0] for tree in everything for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) and node.values]
    prefixes = tuple(str(first.value) for first in joined if isinstance(first, ast.Constant) and str(first.value).endswith("_"))
    assert prefixes
    assert {key for key in words.ENGLISH if key not in literals and not key.startswith(prefixes)} == set()


@pytest.mark.parametrize("path", [path for path in MODULES if path.name not in PLACES], ids=lambda path: path.name)
def test_nothing_is_printed_or_raised_in_words_of_its_own(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.func, ast.Name | ast.Attribute):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if name in {"print", "line", "InputError", "ConfigError", "SandboxError", "Unauthorized"}:
            first = node.args[0]
            assert not (isinstance(first, ast.Constant) and isinstance(first.value, str)), (
                f"{path.name}:{node.lineno} belongs into words.py"
            )


def test_a_language_that_lacks_a_text_speaks_english() -> None:
    words.choose_language("zh")
    try:
        assert words.say("cancelled") == words.ENGLISH["cancelled"]
    finally:
        words.choose_language("en")


@pytest.mark.parametrize("command", ["run", *COMMANDS, "terminal"])
def test_every_command_has_a_help_that_fits_a_terminal(command: str) -> None:
    assert all(len(line) <= 120 for line in help_for(command).splitlines())


def test_every_text_can_be_filled() -> None:
    for key, text in words.ENGLISH.items():
        values = {name: "x" for _, name, _, _ in string.Formatter().parse(text) if name}
        assert words.say(key, **values)
