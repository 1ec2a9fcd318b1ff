"""Every sentence a user may read is in the catalogue, and errors carry their key.

That every sentence of it is said somewhere, and keys that are put together: test_put_together_keys.py.
"""

from __future__ import annotations

import ast
import copy
import importlib
import pickle
import re
import string
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman as dm
from dragoman import words
from dragoman.app import config
from dragoman.app.arguments import COMMANDS
from dragoman.app.options import Options
from dragoman.base import jsontext
from dragoman.base.places import find_places
from dragoman.base.wrapping import lay_out
from dragoman.conversation.help_texts import ENGLISH_HELP, help_for
from dragoman.providers.catalog import builtin_catalog
from dragoman.sessions.store import FileStore
from dragoman.values import errors
from dragoman.words import Sentence, change_values, choose_language, in_language, say

SOURCE = Path(dm.__file__).parent
CATALOGUE = Path(words.__file__).parent
PATHS = [path for path in sorted(SOURCE.rglob("*.py")) if CATALOGUE not in path.parents]
PROGRAM = [path for path in PATHS if path.relative_to(SOURCE).parts[0] in {"app", "cli", "conversation", "fleet", "plain", "tui"}]


@cache
def tree_of(path: Path) -> ast.Module:
    """Parsed when a test looks into it: collecting the tests does not."""
    return ast.parse(path.read_text(encoding="utf-8"))


def tables() -> dict[str, str]:
    """The whole catalogue in English."""
    names = [path.stem for path in (CATALOGUE / "en").glob("*.py") if path.stem not in {"__init__", words.REMEDIES}]
    texts = [importlib.import_module(f"{words.__name__}.en.{name}").TEXTS for name in names]
    assert sum(map(len, texts)) == len({key for table in texts for key in table}), "a key is in two tables"
    return {key: text for table in (*texts, words.ALWAYS_LOADED) for key, text in table.items()}


ENGLISH = tables()


# --- what is said, and what is in the tables


def said(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """Every `say("key", name=…)` in a module, with the names of its values."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "say" and node.args:
            for key in keys_in(node.args[0]):
                yield key, {keyword.arg or "" for keyword in node.keywords}


def keys_in(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from keys_in(node.body)
        yield from keys_in(node.orelse)


def places_in(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_what_is_said_has_an_english_text_with_the_same_values() -> None:
    for path in PATHS:
        for key, values in said(tree_of(path)):
            assert key in ENGLISH, f"{path} says {key!r}, which no table has"
            assert places_in(ENGLISH[key]) == values, f"{path}: {key!r}"


def test_nothing_is_printed_in_words_of_its_own() -> None:
    for path, node in ((each, node) for each in PROGRAM for node in ast.walk(tree_of(each))):
        if isinstance(node, ast.Call) and node.args and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            is_text = isinstance(node.args[0], ast.Constant) and any(map(str.isalpha, str(node.args[0].value)))
            assert name not in {"print", "line"} or not is_text, f"{path}:{node.lineno} belongs into the catalogue"


def test_every_text_can_be_filled() -> None:
    for key, text in ENGLISH.items():
        assert say(key, **{name: 1 if f"{{{name}:" in text else "x" for name in places_in(text)})


COUNTS = re.compile(
    r"\{(?P<name>count|results|lines|entries|requests|turns|times|bytes|calls|lost|chars|tokens|before|wrote|offered)(?P<form>:,)?\}"
    r" (?:\w+ )?(?:\w+s|entries|searches|are|were)\b"
)
AMOUNTS = {"loop.too_long", "loop.too_long_at_least", "live_most_searches"}
"""Sentences about amounts that are never one."""


def test_no_sentence_says_1_answers() -> None:
    """A count and its noun stand in one place, in both forms."""
    assert {key for key, text in ENGLISH.items() if COUNTS.search(text)} - AMOUNTS == set()


def test_a_count_is_said_with_what_it_counts() -> None:
    told = [say("http.cut_short", where="x", bytes=count) for count in (0, 1, 2, 1_234_567)]
    assert [text.partition(" after ")[2].partition(";")[0] for text in told] == ["0 bytes", "1 byte", "2 bytes", "1,234,567 bytes"]
    assert "1 byte that is not a complete record; it was left as it is" in say("sessions.torn_left", bytes=1)
    assert "2 bytes that are not a complete record; they were left as they are" in say("sessions.torn_left", bytes=2)
    assert say("sessions.undo_more", count=1) == "; and 1 more"
    assert say("testing.script_ended", count=1).startswith("The script has ended: 1 answer was given")


@pytest.mark.parametrize("key", [key for key, text in ENGLISH.items() if re.search(r"\{\w+:[^}]*\|", text)])
def test_a_count_in_both_forms_is_given_as_a_number(key: str) -> None:
    one, many = (say(key, **{name: count if f"{{{name}:" in ENGLISH[key] else "x" for name in places_in(ENGLISH[key])}) for count in (1, 2))
    assert one != many
    assert "|" not in one + many


TRANSLATED = (
    "commands",
    "conversation",
    "results",
    "tui",
    "hooks",
    "program_hooks",
    "mcp",
    "mcp_auth",
    "mcp_servers",
    "skills",
    "subagents",
    "worktrees",
    "fleet",
    "viewer",
    "stats",
)


@pytest.mark.parametrize("table", TRANSLATED)
def test_the_conversation_is_complete_in_both_languages(table: str) -> None:
    english, chinese = words._table("en", table), words._table("zh", table)
    assert set(english) == set(chinese)
    assert {key for key in english if places_in(english[key]) != places_in(chinese[key])} == set()


FRONT_ENDS = ("acp.", "commands.", "conversation.", "tui.", "mcp_servers.", "worktrees.", "stats.", "fleet.", "viewer.")
"""Tables of the program that are loaded alone: the first frame is drawn before the others are needed, few have MCP servers, and a worktree
is seldom made."""
OF_THE_PROGRAM = re.compile(
    rf"(?<![\w-])--[a-z]| -[a-zA-Z]\b|(?<![\w/:.])/[a-z]+\b|\bdragoman ({'|'.join(COMMANDS)})\b|config\.toml|\[http\]"
)
"""A flag, a command of the conversation, a command of the program, its configuration."""


def test_a_sentence_of_the_library_names_nothing_that_only_the_program_has() -> None:
    wrong = {key for key, text in ENGLISH.items() if "." in key and not key.startswith(FRONT_ENDS) and OF_THE_PROGRAM.search(text)}
    assert wrong == FLAGS_OF_OTHER_PROGRAMS


def test_what_the_program_says_in_its_own_words_is_a_sentence_of_the_library() -> None:
    remedies = words._table("en", words.REMEDIES)
    for key, text in remedies.items():
        assert "." in key
        assert places_in(text) <= places_in(ENGLISH[key]), key
        assert OF_THE_PROGRAM.search(text), f"{key}: the library's words would do"


def test_the_same_error_names_the_remedy_of_who_reads_it() -> None:
    error = dm.InputError(say("sessions.not_found", session="x"))
    assert str(error) == "there is no session x; Store.list() has all of them"
    words.speak_for_program()
    error = dm.InputError(say("sessions.not_found", session="x"))
    assert str(error) == "there is no session x; `dragoman sessions list` shows all sessions"
    assert (error.key, dict(error.values)) == ("sessions.not_found", {"session": "x"})


LIBRARY = [path for path in PATHS if path not in PROGRAM and path.name != "__main__.py"]  # the latter has CSS: --text


def test_no_words_in_the_library_name_a_flag_or_a_command() -> None:
    """Also what the model is told: an embedder's model must not send its user to a terminal."""
    named = re.compile(rf"(?<=[ `(])--(?!git )[a-z]+\b|\bdragoman ({'|'.join(COMMANDS)})\b")
    for path in LIBRARY:
        comments = {id(node.value) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Expr)}  # docstrings
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in comments and " " in node.value:
                assert not named.search(node.value), f"{path}:{node.lineno}"


FLAGS_OF_OTHER_PROGRAMS = {
    "local.engine_not_loaded",  # pip's
    "local.index_no_installer",  # Python's
    "local.index_no_pip",  # Python's
    "http.too_many_open",  # the shell's: ulimit -n
    "testing.not_recorded",  # pytest's, by our plugin
}


@pytest.mark.parametrize("command", ["run", *COMMANDS])
def test_every_command_has_a_help_that_fits_a_terminal(command: str) -> None:
    """In source lines of 120 columns; shown, at any width (tests/cli/test_columns.py)."""
    assert command in ENGLISH_HELP, f"conversation/help_texts.py has no --help of {command}"
    assert all(len(line) <= 120 for line in ENGLISH_HELP[command].splitlines())
    assert lay_out(help_for(command), 80).split() == ENGLISH_HELP[command].split()


# --- errors are raised with a sentence of the catalogue


def error_names(known: set[str]) -> dict[Path, set[str]]:
    """The names that stand for an error of ours in each module."""
    ours = {"dragoman.values.errors": known}
    names: dict[Path, set[str]] = {}
    while True:
        before = sum(map(len, ours.values()))
        for path in PATHS:
            module = ".".join(["dragoman", *path.relative_to(SOURCE).with_suffix("").parts])
            here = names.setdefault(path, set())
            for node in ast.walk(tree_of(path)):
                if isinstance(node, ast.ImportFrom):
                    here |= {alias.asname or alias.name for alias in node.names if alias.name in ours.get(node.module or "", ())}
                elif isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") in here for base in node.bases):
                    here.add(node.name)
                    ours.setdefault(module, set()).add(node.name)
        if sum(map(len, ours.values())) == before:
            return names


ERRORS = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, dm.DragomanError)}


def own_words(tree: ast.Module, names: set[str]) -> Iterator[int]:
    """The lines where an error is made with a text written there."""
    for scope in ast.walk(tree):
        if not isinstance(scope, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        texts = {
            target.id
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and is_text(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(scope):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names and node.args:
                first = node.args[0]
                if is_text(first) or (isinstance(scope, ast.FunctionDef) and isinstance(first, ast.Name) and first.id in texts):
                    yield node.lineno


def is_text(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, right=right):
            return is_text(left) or is_text(right)
        case ast.IfExp(body=body, orelse=orelse):
            return is_text(body) or is_text(orelse)
        case _:
            return False


def test_no_error_is_raised_in_words_of_its_own() -> None:
    assert [f"{path}:{line}" for path, names in error_names(ERRORS).items() for line in own_words(tree_of(path), names)] == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("raise InputError('no')", [1]),
        ("raise InputError(f'no {x}')", [1]),
        ("raise InputError('no ' + x)", [1]),
        ("raise InputError('no' if x else say('key'))", [1]),
        ("def f():\n    text = f'no {x}'\n    raise InputError(text)", [3]),
        ("raise InputError(say('key'))", []),
        ("raise InputError(error.message)", []),
        ("raise ValueError('no')", []),
    ],
)
def test_own_words_are_found(source: str, found: list[int]) -> None:
    assert sorted(set(own_words(ast.parse(source), ERRORS))) == found


# --- in real situations


def test_an_unknown_model_carries_its_key() -> None:
    with pytest.raises(dm.ConfigError) as caught:
        builtin_catalog().find("gemini-3.8-flahs")
    assert caught.value.key == "providers.unknown_model"
    assert caught.value.values["model"] == "gemini-3.8-flahs"
    hint = caught.value.values["hint"]
    assert isinstance(hint, Sentence)
    assert "gemini-3.8-flash" in hint


def test_a_bad_configuration_carries_its_key(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('aproval = "plan"\n')
    with pytest.raises(dm.ConfigError) as caught:
        config.load(Options(config=str(file)), {}, find_places({"DRAGOMAN_HOME": str(tmp_path)}), str(tmp_path))
    assert caught.value.key
    assert any(isinstance(value, Sentence) and value.key == "unknown_key" for value in caught.value.values.values())


def test_a_missing_session_carries_its_key(tmp_path: Path) -> None:
    with pytest.raises(dm.InputError) as caught:
        FileStore(tmp_path).find("20261115", tmp_path)
    assert caught.value.key == "sessions.not_found"
    assert caught.value.values["session"] == "'20261115'"


def test_a_provider_error_says_its_message_inside_its_whole_text() -> None:
    error = dm.errors.RateLimited(say("cancelled"), provider="mock", status=429, request_id="r1")
    assert str(error) == "mock: cancelled (HTTP 429) [request r1]"
    assert error.key == "cancelled"
    assert isinstance(error.sentence, Sentence)
    assert isinstance(error.sentence.values["message"], Sentence)


def test_a_text_of_anothers_has_no_key() -> None:
    error = dm.InputError("what a service said")
    assert (error.key, dict(error.values), error.sentence) == ("", {}, "what a service said")


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copy_of_an_error_keeps_key_and_values(again: object) -> None:
    from dragoman.sessions.lock import InUse

    assert callable(again)
    for error in (
        InUse("20261115-120102-1a2b3c4d", 7),
        dm.errors.RateLimited(say("needs_value", name="x"), provider="mock", retry_after_s=2.0),
    ):
        copied = again(error)
        assert type(copied) is type(error)
        assert (copied.key, copied.values, str(copied)) == (error.key, error.values, str(error))
        assert vars(copied) == vars(error)


# --- a sentence


def test_a_sentence_is_a_text() -> None:
    sentence = say("needs_value", name="--port")
    assert isinstance(sentence, Sentence)
    assert sentence == "--port needs a value"
    assert hash(sentence) == hash("--port needs a value")
    assert f"{sentence}!" == "--port needs a value!"
    assert type(str(sentence)) is str
    assert jsontext.dumps({"text": sentence}) == '{"text":"--port needs a value"}'
    assert (sentence.key, dict(sentence.values)) == ("needs_value", {"name": "--port"})


def test_the_values_of_a_sentence_cannot_be_changed() -> None:
    sentence = say("needs_value", name="--port")
    assert isinstance(sentence, Sentence)
    with pytest.raises(TypeError):
        sentence.values["name"] = "x"  # type: ignore[index]


TEXTS_AND_NUMBERS = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False))


@given(TEXTS_AND_NUMBERS, st.text())
def test_a_sentence_survives_pickling_and_copying(value: object, inner: str) -> None:
    sentence = say("failed", message=say("wrong_value", key=value, what=inner))
    assert isinstance(sentence, Sentence)
    for again in (pickle.loads(pickle.dumps(sentence)), copy.copy(sentence), copy.deepcopy(sentence)):
        assert again == sentence
        assert (again.key, again.values) == (sentence.key, sentence.values)
        assert in_language(again, "en") == sentence


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, str]]:
    """A translation of two sentences, as files would give it."""
    texts = {"failed": "dragoman：{message}", "needs_value": "{name} 需要一个值"}
    for name, table in ((f"{words.__name__}.zh", {}), (f"{words.__name__}.zh.program", texts)):
        module = ModuleType(name)
        module.TEXTS = table  # type: ignore[attr-defined]
        module.__path__ = []
        monkeypatch.setitem(sys.modules, name, module)
    words._table.cache_clear()
    yield texts
    choose_language("en")
    words._table.cache_clear()


def test_a_sentence_is_said_again_in_another_language_with_those_inside_it(chinese: Mapping[str, str]) -> None:
    sentence = say("failed", message=dm.InputError(say("needs_value", name="--port")))
    assert sentence == "dragoman: --port needs a value"
    translated = in_language(sentence, "zh")
    assert translated == "dragoman：--port 需要一个值"
    assert in_language(translated, "en") == sentence
    choose_language("zh")
    assert say("needs_value", name="--port") == "--port 需要一个值"


def test_what_a_language_lacks_is_said_in_english(chinese: Mapping[str, str]) -> None:
    assert in_language(say("failed", message=say("cancelled")), "zh") == "dragoman：cancelled"
    choose_language("fr")
    assert say("cancelled") == ENGLISH["cancelled"]


def test_a_text_without_a_key_is_left_as_it_is() -> None:
    assert in_language("what a service said", "zh") == "what a service said"


def test_values_can_be_changed_everywhere_inside() -> None:
    sentence = say("failed", message=say("needs_value", name="secret"))
    assert change_values(sentence, lambda text: text.replace("secret", "…")) == "dragoman: … needs a value"
    assert change_values("a secret", lambda text: text.replace("secret", "…")) == "a …"


def test_an_error_is_told_where_its_table_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(name: str) -> ModuleType:
        raise OSError(24, "Too many open files")

    words._table.cache_clear()
    monkeypatch.setattr(words, "import_module", full)
    assert "sessions.not_found" in say("sessions.not_found", session="abc")
    assert "abc" in say("sessions.not_found", session="abc")
    assert say("http.too_many_open").startswith("too many files")
    assert str(dm.errors.ServerError("down", provider="mock")) == "mock: down"


def test_chinese_has_one_word_for_a_token() -> None:
    folder = Path(words.__file__).parent / "zh"
    assert [path.name for path in folder.glob("*.py") if "词元" in path.read_text(encoding="utf-8")] == []
