"""The laws of the live region, in the real program in tmux: the whole history is read back and every line counted."""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Sequence

import pytest

from dragoman.tui.live import Frame, LiveRegion, ScreenRow
from program import Place, calls, script, service
from terminals import PATIENCE_S, Terminal, Tmux, terminal, tmux

pytestmark = pytest.mark.usefixtures("with_tmux")

LINES = 80
WORDS = ("parser", "lexer", "width", "token", "space", "table", "branch", "commit", "merge", "undo", "history", "colour", "caret", "window")
MOST_STRAYS = 3
"""Rows of the region that may be left over: one frame under way leaves its first rows."""
ROW = re.compile(r"row (\d+) of the long answer")


def long_answer(lines: int = LINES, wait_s: float = 0.03) -> str:
    steps: list[str] = []
    chosen = random.Random(lines)
    for number in range(1, lines + 1):
        words = " ".join(chosen.choice(WORDS) for _ in range(chosen.randint(3, 16)))
        steps.append(f"text: {json.dumps(f'row {number} of the long answer {words}.' + chr(10) * 2)}")
        steps.append(f"wait: {wait_s}")
    return "\n".join(steps)


def rows_of(pane: Tmux) -> list[int]:
    """Numbers of the rows of the answer, in the order in which they stand in the history. Wrapped lines are joined."""
    return [int(number) for number in ROW.findall(pane.screen())]


SIZES = [(60, 20), (134, 50), (80, 24), (100, 30), (61, 45), (120, 21), (72, 33), (134, 50)]


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_lost_or_doubled_over_resizes(place: Place, columns: int, request: pytest.FixtureRequest) -> None:
    if columns == 120:
        only_with_every_terminal(request)
    drag(place, columns, [(*size, 0.05 if number % 2 == 0 else None) for number, size in enumerate(SIZES)])


@pytest.mark.parametrize("gap_s", [0.03, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("columns", [40, 200])
def test_a_window_that_is_dragged_about_loses_no_line(place: Place, columns: int, gap_s: float, request: pytest.FixtureRequest) -> None:
    only_with_every_terminal(request)
    chosen = random.Random(columns)
    drag(place, columns, [(chosen.randint(40, 200), chosen.randint(20, 50), gap_s) for _ in range(min(96, int(6 / gap_s)))])


def drag(place: Place, columns: int, sizes: Sequence[tuple[int, int, float | None]]) -> None:
    """While an answer comes and a draft is being written. What is committed stands there once, and the region once; but a row of the region
    may stay for a frame that was under way when the size changed. Without a gap the next size comes when the last one has been drawn."""
    with service(script(long_answer(), "text: The end.")) as place.service, tmux(place, size=(30, columns)) as pane:
        pane.expect("Ask, /")
        pane.type("write much")
        pane.keys("Enter")
        pane.expect("row 2 of")
        pane.type("a draft that is being written while the answer comes, long enough for several rows in a narrow window")
        for width, height, gap_s in sizes:
            last = max(rows_of(pane))
            pane.resize(width, height)
            if gap_s is None:
                until(lambda last=last: LINES in (rows := rows_of(pane)) or max(rows) > last)
            else:
                time.sleep(gap_s)
        pane.resize(100, 40)
        pane.expect("row 80 of")
        pane.expect("? keys")
        pane.type("!")  # it is drawn once the window has settled
        pane.expect("window!")
        screen = pane.screen()
        found = rows_of(pane)
        assert [row for number, row in enumerate(found) if row not in found[number + 1 :]] == list(range(1, LINES + 1)), screen
        strays = len(found) - LINES + screen.count("a draft that is") - 1 + screen.count("ask first") - 1
        assert 0 <= strays <= MOST_STRAYS, screen


def test_resizes_while_a_list_is_open_lose_no_line(place: Place) -> None:
    with service(script(long_answer(30, 0.001))) as place.service, tmux(place, size=(24, 80)) as pane:
        pane.expect("Ask, /")
        pane.type("write")
        pane.keys("Enter")
        pane.expect("row 30 of")
        pane.expect("out · $")
        pane.type("/model")
        pane.keys("Enter")
        pane.expect("Model for the next answer")
        for size in ((60, 20), (110, 40), (90, 30)):
            pane.resize(*size)
            time.sleep(0.2)
        pane.keys("Escape")
        pane.expect_gone("Model for the next answer")
        pane.type("settled")  # it is drawn once the window has
        pane.expect("› settled")
        screen = pane.screen()
        assert rows_of(pane) == list(range(1, 31)), screen
        assert screen.count("ask first") == 1, screen
        assert "Model for" not in screen


@pytest.mark.parametrize("seed", range(2))
def test_a_frame_that_arrives_after_the_size_has_changed_costs_no_line(seed: int) -> None:
    """A frame is made for one size and arrives in a window of another: here each second time, and not by chance."""
    chosen = random.Random(seed)
    live, pane, written = LiveRegion(reflows=True), Tmux(f"dragoman-test-{os.getpid()}-{os.urandom(4).hex()}"), 0
    texts: list[str] = []
    columns, rows = 100, 30
    try:
        pane.run("new-session", "-d", "-s", "talk", "-x", str(columns), "-y", str(rows), "sleep", "1000")
        with open(pane.run("display-message", "-p", "-t", "talk", "#{pane_tty}").strip(), "wb", buffering=0) as tty:
            for step in range(30):
                made_for = (columns, rows)
                if is_late := step % 2 == 1:
                    columns, rows = chosen.randint(30, 130), chosen.randint(20, 50)
                    pane.resize(columns, rows)
                texts = region_like(texts, made_for[0], chosen)
                caret = chosen.randrange(len(texts))
                frame = Frame([ScreenRow(each, len(each)) for each in texts], (caret, chosen.randint(0, len(texts[caret]))))
                lines = [f"line {written + number} of many" for number in range(chosen.choice((0, 1, 1, 2, 5)))]
                written += len(lines)
                tty.write(live.frame(frame, lines, made_for).encode() + f"\x1b]2;step {step}\x07".encode())
                until(lambda step=step: pane.run("display-message", "-p", "-t", "talk", "#{pane_title}").strip() == f"step {step}")
                if is_late:
                    live.mark_moved()
                if is_late and chosen.random() < 0.5:  # and once more, before it is drawn again
                    columns, rows = chosen.randint(30, 130), chosen.randint(20, 50)
                    pane.resize(columns, rows)
        screen = pane.screen()
        assert [int(number) for number in re.findall(r"line (\d+) of many", screen)] == list(range(written)), screen
    finally:
        pane.close()


def region_like(before: list[str], columns: int, chosen: random.Random) -> list[str]:
    """Rows of the region, of which most are those that stood there before."""
    rows = range(chosen.randint(2, 6))
    kept = [number < len(before) and len(before[number]) < columns and chosen.random() < 0.7 for number in rows]
    return [before[number] if kept[number] else f"live {number} " + "x" * chosen.randint(0, columns - 10) for number in rows]


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def only_with_every_terminal(request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--every-terminal"):
        pytest.skip("takes long: --every-terminal")


def test_output_of_10000_lines_is_a_tail_and_then_one_line(place: Place) -> None:
    command = calls(("run_shell", {"command": "seq 1 10000"}))
    with service(script(command, "text: Counted.")) as place.service, tmux(place, size=(24, 80)) as pane:
        pane.expect("Ask, /")
        pane.type("count")
        pane.keys("Enter")
        pane.expect("Counted.")
        pane.expect("out · $")
        lines = pane.lines()
        assert len(lines) < 24, "none of it went into the history"
        assert any("10,000 lines" in each and "10000" in each for each in lines), lines
        pane.keys("C-o")
        pane.expect("exit 0")
        pane.keys("End")
        pane.expect("of 10002")
        pane.keys("q")
        pane.expect("Counted.")


def test_wide_and_right_to_left_text_keeps_its_place(place: Place) -> None:
    text = "你好，世界。" * 12 + " 👩‍👩‍👧‍👦 👍🏽 é العربية עברית end"
    with service(script(f"text: {json.dumps(text)}")) as place.service, tmux(place, size=(24, 80)) as pane:
        pane.expect("Ask, /")
        pane.type("写点什么 👍")
        pane.expect("› 写点什么 👍")
        pane.keys("Enter")
        pane.expect("end")
        screen = pane.expect("out · $")
        assert "".join(screen.split()).count("你好，世界。" * 12) == 1
        assert all(len(each) < 80 for each in pane.lines())


def streamed(shown: Terminal, pieces: int) -> None:
    shown.expect("claude-opus-5")
    shown.send("go\r")
    shown.expect(f"row {pieces} of", "out · $")


def test_frames_are_small_and_erase_nothing_they_should_not(place: Place) -> None:
    with service(script(long_answer(300, 0.005))) as place.service, terminal(place, size=(24, 80)) as shown:
        streamed(shown, 300)
        raw = shown.raw
    text = sum(len(each) for each in re.findall(rb"row \d+ of the long answer[^\x1b\r]*", raw))
    assert len(raw) < 4 * text, f"{len(raw)} bytes for {text}"
    for found in re.finditer(rb"\x1b\[J", raw):
        assert raw[: found.start()].endswith(b"\x1b[K\x1b[C"), "tmux would push what it erases into its history"
    assert b"\x1b[2J" not in raw
    assert b"\x1b[?1049" not in raw


def test_a_terminal_that_takes_its_time_gets_every_line_and_stops_at_once(place: Place, request: pytest.FixtureRequest) -> None:
    only_with_every_terminal(request)
    with (
        service(script(long_answer(200, 0.002), "text: Beginning.\nwait: 300\ntext: x")) as place.service,
        terminal(place, size=(24, 80)) as shown,
    ):
        shown.expect("claude-opus-5")
        shown.send("go\r")
        until = time.monotonic() + 60
        while "out · $" not in shown.text and time.monotonic() < until:
            shown.raw += os.read(shown.master, 64)
            time.sleep(0.002)
        found = [int(number) for number in ROW.findall(shown.text)]
        assert sorted(set(found)) == list(range(1, 201))
        shown.send("again\r")
        shown.expect("Beginning.")
        shown.send("\x1b")
        shown.expect("cancelled")


def test_a_terminal_that_does_not_wrap_rows_again_shows_the_conversation(place: Place, request: pytest.FixtureRequest) -> None:
    """As GNU screen says it is: nothing of what it lacks is used."""
    only_with_every_terminal(request)
    with (
        service(script(long_answer(40, 0.005))) as place.service,
        terminal(place, env={"TERM": "screen", "STY": "1"}, size=(24, 80)) as shown,
    ):
        streamed(shown, 40)


def test_a_list_leaves_nothing_behind_where_there_is_no_second_screen(place: Place) -> None:
    """As in GNU screen: what stood there is in the history, the list is gone, and the prompt stands there again."""
    place.more_env = {"STY": "1"}
    with service(script("text: One answer.")) as place.service, tmux(place, size=(24, 80)) as pane:
        pane.expect("Ask, /")
        pane.type("first question")
        pane.keys("Enter")
        pane.expect("out ·")
        pane.type("/context")
        pane.keys("Enter")
        pane.expect("Next request")
        pane.keys("Escape")
        pane.expect("Ask, /")
        shown = pane.screen()
        assert "Next request" not in shown
        assert shown.count("first question") == shown.count("One answer.") == 1
