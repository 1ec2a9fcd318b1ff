"""Every command in a terminal of 40, 80 and 200 columns: no line is longer, and no word that fits a line is broken.

The commands come from the table, so a new one is looked at too. What a word is, is told by the same command in a terminal that is wide
enough for everything.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from pathlib import Path

import pytest

from cli.test_context import worked
from dragoman.app.arguments import COMMANDS
from dragoman.base.graphemes import width
from dragoman.values.messages import user
from program import KEY, Place
from terminals import plain, terminal

WIDTHS = (40, 80, 200)
WIDE = 4_000
_BETWEEN_WORDS = re.compile(r"[\s…]+|(?<=[\u2e80-\uffef])|(?=[\u2e80-\uffef])")
"""A line may be broken on either side of a full-width character: of a folder's name, for example."""
SERVES = {"acp", "serve-local", "view"}
"""Commands that do not end by themselves."""

RUNS: list[tuple[str, ...]] = [
    ("--help",),
    *((command, "--help") for command in COMMANDS),
    *((command,) for command in COMMANDS if command not in SERVES),
    ("doctor", "--offline"),
    ("sessions", "--all"),
    ("sessions", "show", "latest"),
    ("sessions", "search", "parser"),
    ("sessions", "export", "nosuch"),
    ("sessions", "nonsense"),
    ("context", "--all"),
    ("context", "simulate"),
    ("models", "pull", "nonsense"),
    ("--modle", "x"),
    ("-p", "hello", "-m", "nobody/knows-this-model"),
    ("-p", "hello", "--max-turns", "none"),
]


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder with a session of some length, a project's file that is not trusted, and a setting of the user's."""
    place = Place(tmp_path_factory.mktemp("columns"))
    kept = worked(place, count=30)
    kept.history.say(user("Please look into why the parser, of all things, loses every second full-width character it is given to read"))
    kept.history.prune(["c3", "c6"], 400, "cold")
    kept.closed()
    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text('approval = "plan"')
    (place.home / "dragoman" / "config.toml").write_text('fallback = ["anthropic/claude-sonnet-5-5", "gemini/gemini-3.8-flash"]')
    return place


def shown(place: Place, columns: int, arguments: tuple[str, ...]) -> str:
    """What the program writes into a terminal of that width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = place.start_on(slave, *arguments, env={"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"})
    pieces: list[bytes] = []
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # the program has ended
            break
        if not piece:
            break
        pieces.append(piece)
    os.close(master)
    process.wait(60)
    return plain(b"".join(pieces))


def check(narrow: str, wide: str, columns: int) -> None:
    too_long = [line for line in narrow.split("\n") if width(line) > columns]
    assert not too_long, f"wider than {columns} columns: {too_long[0]!r}"
    words = set(map(like, _BETWEEN_WORDS.split(wide)))
    long_words = [word for word in words if len(word) > columns]
    for word in map(like, _BETWEEN_WORDS.split(narrow)):
        if word in words or not word.isascii() or any(word in long for long in long_words):
            continue
        raise AssertionError(f"{word!r} is part of a word, in:\n{narrow}")


def like(word: str) -> str:
    """Ages, sizes and times differ from run to run; bars differ with the width."""
    return re.sub(r"[#.░█▉▊▋▌▍▎▏]{2,}", "", re.sub(r"\d[\d,.]*(?:[smhdw]\b)?", "0", word))


@pytest.mark.parametrize("arguments", RUNS, ids=" ".join)
def test_no_command_breaks_a_word_that_fits_the_line(lived_in: Place, arguments: tuple[str, ...]) -> None:
    wide = shown(lived_in, WIDE, arguments)
    assert wide.strip()
    for columns in WIDTHS:
        check(shown(lived_in, columns, arguments), wide, columns)


def test_the_width_can_be_told_and_a_pipe_has_a_row_per_line(lived_in: Place) -> None:
    whole = lived_in.run("config").out
    assert max(map(len, whole.splitlines())) > 80, "a row is a line, for programs that read lines"
    check(lived_in.run("config", env={"COLUMNS": "50"}).out, whole, 50)
    assert max(map(len, lived_in.run("--help").out.splitlines())) <= 80


def test_what_another_program_reads_is_never_broken(lived_in: Place) -> None:
    for arguments in (("models", "--output-format", "json"), ("sessions", "export", "latest")):
        assert max(map(len, shown(lived_in, 40, arguments).splitlines())) > 40


@pytest.mark.parametrize("columns", WIDTHS)
def test_a_conversation_greets_in_whole_words(place: Place, columns: int) -> None:
    def greeting(columns: int) -> str:
        with terminal(place, "--trust", size=(40, columns), env={"ANTHROPIC_API_KEY": KEY}) as shown:
            shown.prompt()
            for command in ("/help", "/tools", "/nonsense"):
                shown.ask(command)
                shown.prompt()
            shown.send("\x04")
            shown.ended()
            return shown.text

    (place.work / ".dragoman").mkdir()
    (place.work / ".dragoman" / "config.toml").write_text('approval = "plan"')
    check(greeting(columns), greeting(WIDE), columns)


def test_the_folder_is_the_only_long_word(tmp_path: Path) -> None:
    """The check itself finds what it must find."""
    check("one two\nthree", "one two three", 10)
    with pytest.raises(AssertionError, match="part of a word"):
        check("one two th\nree", "one two three", 10)
    with pytest.raises(AssertionError, match="part of a word"):
        check("one thr…", "one three", 10)
    with pytest.raises(AssertionError, match="wider than"):
        check("one two three", "one two three", 10)
