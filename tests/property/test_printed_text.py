"""What a command printed: colours and redraws resolved as pyte resolves them, in any pieces; long texts cut within their bound."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyte
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.base import jsontext
from dragoman.tools.command_text import CommandStream, cut_streams
from dragoman.tools.output import Outputs
from dragoman.tools.printed_text import PrintedText, as_printed
from dragoman.tools.text_ends import LINE_CHARS, TextEnds
from dragoman.values.messages import Text, ToolResult
from dragoman.values.record import CommandOutput, HostsUsed, ToolFinished, encode_entry
from dragoman.values.record_reading import decode_entry
from property.test_terminal import ESCAPES, Oracle

ROWS, COLUMNS = 30, 250
FEW = st.sampled_from(["", "0", "1", "2", "5"])
MOVES = st.builds(lambda n, final: f"\x1b[{n}{final}", FEW, st.sampled_from("ABCDEFGXae"))
SHIFTS = st.builds(lambda n, final: f"\x1b[{n}{final}", FEW, st.sampled_from("@P"))
ERASES = st.builds(lambda n, final: f"\x1b[{n}{final}", st.sampled_from(["", "0", "1", "2"]), st.sampled_from("JK"))
PLACES = st.builds(lambda row, column: f"\x1b[{row};{column}H", FEW, FEW)
CONTROLS = st.sampled_from(["\r", "\n", "\r\n", "\b", "\x07"])
WORDS = st.text("abcXYZ 0", min_size=1, max_size=8)
NO_MODES = ESCAPES.filter(lambda escape: not escape.startswith("\x1b[?7"))
HERE = (WORDS, WORDS, WORDS, CONTROLS, CONTROLS, MOVES, ERASES, PLACES, NO_MODES)
DRAWING = st.lists(st.one_of(*HERE, SHIFTS), max_size=25).map("".join) | st.lists(st.one_of(*HERE, st.just("\t")), max_size=25).map("".join)
PIECES = st.lists(st.integers(0, 400), max_size=12)


def shown_by_pyte(text: str) -> list[str]:
    screen = Oracle(COLUMNS, ROWS)
    screen.set_mode(pyte.modes.LNM)
    pyte.Stream(screen).feed(text)
    return [line.rstrip(" ") for line in screen.display]


def lines_of(text: str) -> list[str]:
    lines = [line.expandtabs(8).rstrip(" ") for line in text.split("\n")]
    return [*lines, *[""] * (ROWS - len(lines))]


@settings(max_examples=150, deadline=None)
@given(DRAWING)
@example("10%\r100%\ndone")
@example("a\nb\n\x1b[2A\x1b[Kc\n")
def test_it_is_what_pyte_shows(text: str) -> None:
    assert lines_of(as_printed(text)) == shown_by_pyte(text)


def split(text: str, cuts: list[int]) -> list[str]:
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(places)]


ODD = ["\t", "\x01", "\x1b7", "\x1b8", "e\u0301", "\u0301", "漢", "🎉", "\x1b[?1049h", "\x1b[?1049l"]
ANY = st.lists(st.one_of(*HERE, SHIFTS, ESCAPES, st.sampled_from(ODD))).map("".join)


@settings(max_examples=500)
@given(st.text(max_size=100) | ANY, PIECES, st.integers(1, 8), st.integers(8, 20))
def test_any_pieces_give_the_same_text(text: str, cuts: list[int], rows: int, columns: int) -> None:
    def printed(pieces: list[str]) -> str:
        drawn = PrintedText(rows, 8 * columns)
        return "".join(map(drawn.feed, pieces)) + drawn.feed("", is_end=True) + drawn.take()

    whole = printed([text])
    assert printed(split(text, cuts)) == whole
    assert not {char for char in whole if (char < " " and char not in "\n\t\v\f") or "\x7f" <= char <= "\x9f"}


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\n\n\t "), max_size=300), PIECES, st.integers(1, 5))
def test_plain_text_stays_as_it_is(text: str, cuts: list[int], rows: int) -> None:
    """Also where something else comes before it, so that it is drawn."""
    drawn = PrintedText(rows, 16)
    assert "".join(map(drawn.feed, split(text, cuts))) + drawn.take() == text
    drawn = PrintedText(rows, 16)
    assert drawn.feed("\x1b7" + text) + drawn.take() == text


@given(st.lists(st.tuples(st.text("ab \n\t", max_size=20), st.booleans()), max_size=20))
def test_what_is_taken_between_comes_once(pieces: list[tuple[str, bool]]) -> None:
    drawn, said = PrintedText(3, 16), ""
    for text, is_taken in pieces:
        said += drawn.feed(text) + (drawn.take() if is_taken else "")
    assert said + drawn.take() == "".join(text for text, _ in pieces)


# Cutting


LINES = st.lists(st.text("ab é漢", max_size=40) | st.integers(0, 5_000).map(lambda count: "x" * count), max_size=30).map("\n".join)


@settings(max_examples=200)
@given(LINES, PIECES, st.integers(0, 3_000), st.integers(0, 2_000), st.integers(0, 3_000))
def test_both_ends_are_kept_within_the_bound(text: str, cuts: list[int], whole: int, head_chars: int, tail_chars: int) -> None:
    def ends_of(pieces: list[str]) -> TextEnds:
        made = TextEnds(whole, head_chars, tail_chars)
        for piece in pieces:
            made.add(piece)
        return made

    ends = ends_of(split(text, cuts))
    assert ends.chars == len(text)
    assert ends.whole == (text if len(text) <= whole else None)
    cut = ends.cut(head_chars, tail_chars)
    assert cut == ends_of([text]).cut(head_chars, tail_chars), "in any pieces"
    assert len(cut.head) + len(cut.tail) <= head_chars + tail_chars
    if not cut.dropped_chars:
        short = [line for line in text.split("\n") if len(line) <= LINE_CHARS]
        assert cut.head == text or [line for line in cut.head.split("\n") if "left out]… " not in line] == short, (
            "only long lines are folded"
        )
        return
    assert cut.dropped_lines <= text.count("\n")
    if all(len(line) <= LINE_CHARS for line in text.split("\n")):
        assert text.startswith(cut.head)
        assert text.endswith(cut.tail)
        assert len(cut.head) + len(cut.tail) + cut.dropped_chars >= len(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kept")


@settings(max_examples=100, deadline=None)
@given(LINES, LINES, st.integers(0, 6_000), st.booleans(), PIECES)
def test_two_streams_share_the_room(folder: Path, out: str, err: str, room: int, has_failed: bool, cuts: list[int]) -> None:
    outputs = Outputs(folder, room)
    streams = [CommandStream(outputs, "stdout"), CommandStream(outputs, "stderr")]
    for stream, text in zip(streams, (out, err), strict=True):
        data = text.encode()
        places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
        for start, end in pairwise(places):
            stream.feed(data[start:end])
        stream.end()
        assert stream.recorded == text, "the record has what came"
    shown = cut_streams(*streams, room, has_failed=has_failed)
    assert sum(len(each.text) for each in shown) <= room + 2 * (outputs.note_chars + 1)
    for text, each in zip((out, err), shown, strict=True):
        assert bool(each.output_file) == bool(each.dropped_chars)
        if not each.output_file:
            assert each.text == text
        else:
            assert Path(each.output_file).read_text() == text
    if len(out) + len(err) <= room:
        assert [each.text for each in shown] == [out, err]


# On the record


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
COMMANDS = st.builds(
    CommandOutput, TEXTS, TEXTS, st.none() | st.integers(0, 255), TEXTS, st.booleans(), st.booleans(), TEXTS,
    st.builds(HostsUsed, *[st.lists(TEXTS, max_size=2).map(tuple)] * 3), TEXTS, TEXTS,
)  # fmt: skip


@given(COMMANDS)
def test_the_record_gives_back_what_was_printed(command: CommandOutput) -> None:
    entry = ToolFinished(1, 2, ToolResult("c", "run_shell", (Text("x"),)), command=command)
    line = encode_entry(entry)
    assert decode_entry(line) == entry
    told = jsontext.decode(line)["command"]
    assert (told["stdout"], told["stderr"], told["exitCode"]) == (command.stdout, command.stderr, command.exit_code)
