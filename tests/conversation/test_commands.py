"""A slash command is its row, its function and its sentences: whoever forgets one of them is told which."""

from __future__ import annotations

import ast
import asyncio
import re
import typing
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from checks.commands import tables

import dragoman as dm
from dragoman.app.arguments import COMMANDS as SUBCOMMANDS
from dragoman.conversation import commands
from dragoman.conversation.command_pages import choices_after, help_page, menu_rows
from dragoman.conversation.commands import COMMANDS, GROUPS, Command, Operand, commands_of, find_command, function_of
from dragoman.conversation.slash import SlashCommands, own_method
from dragoman.conversation.talk import Talk
from dragoman.policy.judge import Mode
from dragoman.tui.commands import LANGUAGES, LiveCommands
from dragoman.tui.theme import NAMES as THEMES
from dragoman.values.messages import Effort
from dragoman.words import choose_language, lookup

ROOM = Path(dm.__file__).parent / "conversation"
HANDLERS: dict[typing.Literal["plain", "live"], type[SlashCommands]] = {"plain": SlashCommands, "live": LiveCommands}


# --- what is missing


def rows_without_function(rows: Iterable[Command]) -> Iterator[str]:
    """Each row that no conversation can carry out, with the place where it was looked for."""
    for row in rows:
        for place, handler in HANDLERS.items():
            if place not in row.where or hasattr(handler, own_method(row)):
                continue
            if not row.run:
                yield f"{row.slash}: {handler.__name__} has no {own_method(row)}, and the row names no function"
                continue
            try:
                function_of(row)
            except (ImportError, AttributeError) as error:
                yield f"{row.slash}: {row.run} ({error})"


def sentences_missing(rows: Iterable[Command]) -> Iterator[str]:
    """The keys that a row wants and a language lacks."""
    for row in rows:
        listed = [f"commands.help_{row.name}"] if row.group else []
        longer = [f"commands.more_{row.name}"] if row.group and lookup(f"commands.more_{row.name}", "en") is not None else []
        for key in (*listed, *longer):
            yield from (f"{row.slash}: {language} has no {key}" for language in ("en", "zh") if lookup(key, language) is None)


def functions_in(source: str) -> list[str]:
    """Those that a row can name: public, of a conversation and what was written behind the command."""
    found: list[str] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            taken = [(each.arg, ast.unparse(each.annotation) if each.annotation else "") for each in node.args.args[:2]]
            if taken == [("talk", "Talk"), ("rest", "str")]:
                found.append(node.name)
    return found


def functions_without_row(rows: Iterable[Command], sources: dict[str, str]) -> set[str]:
    """`sources`: module under conversation/ → its text."""
    named = {row.run for row in rows}
    return {f"{module}:{name}" for module, source in sources.items() for name in functions_in(source)} - named


def ways_without_row(rows: Iterable[Command], handler: type) -> set[str]:
    return {name for name in dir(handler) if name.startswith("do_")} - {own_method(row) for row in rows}


def sources() -> dict[str, str]:
    paths = ROOM.rglob("*.py")
    return {".".join(path.relative_to(ROOM).with_suffix("").parts): path.read_text(encoding="utf-8") for path in paths}


def test_every_row_has_its_function_and_its_sentences() -> None:
    assert list(rows_without_function(COMMANDS)) == []
    assert list(sentences_missing(COMMANDS)) == []
    assert all(not row.group or row.group in GROUPS for row in COMMANDS)


def test_every_function_has_its_row() -> None:
    assert functions_without_row(COMMANDS, sources()) == set()
    for handler in HANDLERS.values():
        assert ways_without_row(COMMANDS, handler) == set()


def test_every_sentence_has_its_row() -> None:
    listed = {row.name for row in COMMANDS if row.group}
    for language in ("en", "zh"):
        keys = __import__(f"dragoman.words.{language}.commands", fromlist=["TEXTS"]).TEXTS
        assert {name for key in keys for name in re.findall(r"^commands\.(?:help|more)_(.+)", key)} == listed


PLANTED = Command("planted", "program", "pages.work_slash:planted")
FUNCTION = "def planted(talk: Talk, rest: str) -> str:\n    return time.ctime()\n"


def test_a_row_without_a_function_is_named() -> None:
    (problem,) = set(rows_without_function([PLANTED]))
    assert "/planted: pages.work_slash:planted" in problem
    assert list(rows_without_function([Command("planted", "program", where=commands.LIVE)])) == [
        "/planted: LiveCommands has no do_planted, and the row names no function"
    ]


def test_a_row_without_a_sentence_is_named_with_the_language(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(sentences_missing([PLANTED])) == ["/planted: en has no commands.help_planted", "/planted: zh has no commands.help_planted"]
    from dragoman.words.en.commands import TEXTS

    monkeypatch.setitem(TEXTS, "commands.help_planted", "the time")
    assert list(sentences_missing([PLANTED])) == ["/planted: zh has no commands.help_planted"]


def test_a_function_without_a_row_is_named() -> None:
    assert functions_without_row(COMMANDS, {"pages.work_slash": FUNCTION}) == {"pages.work_slash:planted"}
    assert functions_without_row([PLANTED], {"pages.work_slash": FUNCTION}) == set()
    assert functions_without_row([PLANTED], {"pages.work_slash": FUNCTION.replace("planted", "_helper")}) == set()
    own = type("Handler", (SlashCommands,), {"do_planted": lambda self, rest: None})
    assert ways_without_row(COMMANDS, own) == {"do_planted"}
    assert ways_without_row((*COMMANDS, PLANTED), own) == set()


def test_a_new_row_is_on_the_page_in_the_menu_and_on_the_docs_page(monkeypatch: pytest.MonkeyPatch) -> None:
    from dragoman.words.en.commands import TEXTS

    monkeypatch.setitem(TEXTS, "commands.help_planted", "the time")
    monkeypatch.setattr(commands, "COMMANDS", (*COMMANDS, PLANTED))
    assert "  /planted           the time" in help_page("plain").split("\n")
    assert menu_rows("live")["/planted"] == "the time"
    assert "| `/planted` | the time |  |  |" in tables("en")
    assert "/planted" in LiveCommands(cast("typing.Any", SimpleNamespace(screen=SimpleNamespace(message=print)))).names


# --- what is made of the rows


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_of_the_plain_conversation_has_every_command_in_each_language(language: str) -> None:
    choose_language(language)
    try:
        shown = re.findall(r"^  /([a-z-]+)", help_page("plain"), re.MULTILINE)
    finally:
        choose_language("en")
    assert sorted(shown) == sorted(row.name for row in COMMANDS if row.group and "plain" in row.where)


def test_the_rows_have_every_subcommand_of_the_shell() -> None:
    assert sorted(row.name for row in commands_of("shell")) == sorted(SUBCOMMANDS)


def test_no_name_stands_for_two_commands() -> None:
    for place in HANDLERS:
        names = [name for row in commands_of(place) for name in (row.name, *row.aliases)]
        assert len(names) == len({*names})
    assert find_command("/tasks", "plain") == find_command("/ps", "plain")
    assert find_command("/plugins", "live") is None, "the shell has that alone"


def test_choices_are_those_of_what_they_choose() -> None:
    def choices(name: str) -> list[str]:
        return [choice for choice, _ in choices_after(f"/{name}", "live")]

    assert choices("approval") == list(typing.get_args(Mode))
    assert choices("effort") == list(typing.get_args(Effort))
    assert choices("lang") == list(LANGUAGES)
    assert set(choices("theme")) == {"auto", *THEMES} - {"none"}
    assert choices_after("/sandbox", "live")[-1] == ("on", "back into the sandbox")
    assert choices_after("/tools", "live") == []
    assert choices_after("/nonsense", "live") == []


def test_a_command_waits_for_the_end_of_a_run_unless_its_row_says_otherwise() -> None:
    waits = {
        line: row.waits(line.split())
        for line in ("/mcp", "/sandbox port 1", "/sandbox off", "/undo")
        if (row := find_command(line.split()[0], "live"))
    }
    assert waits == {"/mcp": False, "/sandbox port 1": False, "/sandbox off": True, "/undo": True}


def test_what_may_follow_is_part_of_the_usage_where_it_stands_behind_the_command() -> None:
    operands = (Operand("ID", "sessions", "actions"), Operand("N", is_required=True), Operand("FILE"), Operand("", choices=("on",)))
    assert Command("x", "model", operands=operands).usage == "/x N [FILE]"


# --- what a function returns is shown


def test_what_a_function_returns_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    ran: list[str] = []

    async def work() -> None:
        ran.append("work")

    def refuse() -> str:
        raise dm.InputError("no")

    talk = cast(
        "Talk",
        SimpleNamespace(
            screen=SimpleNamespace(message=lambda text, style="": said.append(f"{text}{style and f' ({style})'}")), start=asyncio.run
        ),
    )
    answers = iter([lambda: "one\ntwo", lambda: None, work, refuse])
    monkeypatch.setattr("dragoman.conversation.slash.function_of", lambda command: lambda talk, rest: next(answers)())
    for _ in range(4):
        SlashCommands(talk).run("/usage")
    assert (said, ran) == (["one", "two", "no (yellow)"], ["work"])


def test_an_unknown_command_is_told_with_the_nearest() -> None:
    said: list[str] = []
    talk = cast("Talk", SimpleNamespace(screen=SimpleNamespace(message=lambda text, style="": said.append(text))))
    SlashCommands(talk).run("/modle x")
    assert "/model" in said[0]
