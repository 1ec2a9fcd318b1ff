"""What `dragoman context` looks like: in 80 columns and in 200, with colours and without, whatever script a session is in."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import unicodedata
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.test_context import Kept, worked
from context.test_plan import plan
from dragoman.base.graphemes import clusters, width, width_of
from dragoman.context.decide import Decision
from dragoman.context.plan import Plan
from dragoman.conversation.page import Look, Page, pad, table
from dragoman.conversation.pages.context_page import page_of
from dragoman.loop.history import History
from dragoman.values.messages import FinishReason, Message, Response, Text, ToolCall, assistant, tool_result, user
from dragoman.values.usage import Prices, Usage
from program import Place
from property.conversations import words
from property.test_fold import lived

NOW_MS = 1_794_744_062_123
MINUTE_MS = 60_000
_STYLES = re.compile(r"\x1b\[\d+m")


def columns_of(line: str) -> int:
    return sum(map(width_of, clusters(line)))


def session() -> Plan:
    """Twenty minutes of work: three commands, of which one was pruned, a file, a prompt taken back."""
    now = NOW_MS - 20 * MINUTE_MS

    def clock() -> int:
        return now

    history = History(now_ms=clock)
    history.configure("claude-opus-5", "Be good. " * 100, session_id="20261115-120102-1a2b3c4d", deployment="anthropic")
    history.say(user("重构解析器：全角字符丢了"))
    sizes = [("run_shell", '{"command":"make test"}', 900), ("read_file", '{"file_path":"src/解析器.py"}', 2_400)]
    total = 400
    for number, (name, arguments, size) in enumerate([*sizes, sizes[0]]):
        call = ToolCall(f"c{number}", name, arguments)
        usage = Usage(10, total if number else 0, 300, 60)
        history.answer(Response(Message("assistant", (Text("看一下。"), call)), FinishReason.TOOL_CALLS, usage=usage))
        history.finish_tool(tool_result(call, "结果 ok\n" * (size // 6)))
        total += 300 + size // 4
        now += 6 * MINUTE_MS
    history.prune(["c0"], 180, "cold", 0)
    before = history.entries[-1]
    history.say(user("no"))
    history.rewind(before)
    history.answer(Response(assistant("Done."), FinishReason.STOP, usage=Usage(10, total, 300, 60)))
    prices = Prices(input=5.0, output=25.0, cache_read=0.5, cache_write=6.25)
    decision = Decision(prune=("c2",), saved_tokens=170, reason="pressure", premium_tokens=20)
    return plan(history.entries, window=200_000, now_ms=NOW_MS, prices_of=lambda *_: prices, decision=decision)


EIGHTY = """\
Fix
20261115-120102-1a2b3c4d · anthropic/claude-opus-5 · as of entry 12

The next request so far: about 2,666 tokens, 1.3% of 200,000
  ▊░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░

  system prompt            259  9.7%  ██████▎
  prompts (1)               16  0.6%  ▍
  answers (4)               31  1.2%  ▊
  calls (3)                 78  2.9%  █▉
  read_file results (1)  1,239   46%  ██████████████████████████████
  run_shell results (2)    499   19%  ████████████▏  446 pruned
  not in the record        544   20%  █████████████▏

entry  age  tokens  what
    1  20m     259  system  Be good. Be good. Be good. Be good. Be good. Be…
    2  20m      16  prompt  重构解析器：全角字符丢了
    3  20m      34  answer  看一下。 · $ make test
    4  20m      24  result  pruned by 9, was 470 · run_shell: 结果 ok 结果 ok…
    5  14m      36  answer  看一下。 · read_file src/解析器.py
    6  14m   1,239  result  read_file: 结果 ok 结果 ok 结果 ok 结果 ok 结果 ok…
    7   8m      34  answer  看一下。 · $ make test
    8   8m     475  result  would be pruned next · run_shell: 结果 ok 结果 ok…
   10   2m          prompt  rewound by 11 · no
   12   2m       5  answer  Done.
               544  unseen  not recorded: template, tools as text, examples

Pruned    446 tokens fewer in the next request (1 result); 180 not sent since
          entry 9, 2m ago: 180 tokens (1 result), the cache was cold, so it cost
          nothing
Next      170 tokens would be pruned (1 result): the window filled up
Estimate  2,666 tokens; the service counted 2,660 in the last request; so far
          the estimate was off by 28.5% (median of 3), at worst by 66.5%
Cache     about 1,642 tokens (62%) should be read from it, last used 2m ago; of
          the last request, it read 2,350 (88%)
Cost      $0.0062 for the input of the next request; $0.0163 so far (6,340
          tokens in (80% cached) · 240 out)
"""


def shown(columns: int, *, color: bool = False, plain: bool = False, everything: bool = False) -> str:
    return page_of(session(), Look(columns, color, plain), title="Fix", now_ms=NOW_MS, everything=everything)


def test_in_eighty_columns() -> None:
    assert shown(80) == EIGHTY


def test_in_two_hundred_columns_the_same_with_more_to_read() -> None:
    narrow, wide = shown(80).splitlines(), shown(200).splitlines()
    assert max(map(columns_of, narrow)) <= 80
    assert 120 < max(map(columns_of, wide)) <= 200
    assert len(wide) < len(narrow), "nothing need be wrapped"
    rows = [line for line in wide if re.match(r" +\d+ ", line)]
    assert [line[:26] for line in rows] == [line[:26] for line in narrow if re.match(r" +\d+ ", line)]
    assert all("would be pruned next · run_shell: " in line for line in rows if "475" in line)


@pytest.mark.parametrize("columns", [40, 80, 200, 0])
def test_colour_changes_nothing_but_colour(columns: int) -> None:
    painted = shown(columns, color=True)
    assert painted != shown(columns)
    lines = [_STYLES.sub("", line).rstrip() for line in painted.splitlines()]
    assert lines == shown(columns).splitlines()
    assert all(not re.search(r"\x1b\[(?:2|1|3[0-8])m[^\x1b]*$", line) for line in painted.splitlines()), "no style runs on"


def test_a_terminal_that_knows_ascii_alone() -> None:
    signs = {char for char in shown(80, plain=True) if not char.isascii()}
    assert signs <= set("重构解析器：全角字符丢了看一下。结果"), "what the session holds, and no sign of ours"
    assert max(map(columns_of, shown(80, plain=True).splitlines())) <= 80


@given(data=st.data(), columns=st.integers(40, 220))
def test_no_line_is_wider_than_the_page(data: st.DataObject, columns: int) -> None:
    found = plan(lived(data).history.entries, window=1_000)
    for everything in (False, True):
        text = page_of(found, Look(columns), title=data.draw(words), now_ms=NOW_MS, everything=everything)
        assert max(map(columns_of, text.splitlines())) <= columns
        assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in text.replace("\n", ""))


@given(rows=st.lists(st.tuples(words, words), min_size=1, max_size=5))
def test_columns_line_up_whatever_the_script(rows: list[tuple[str, str]]) -> None:
    page = Page(Look())
    table(page, [("a", "b", "|"), *((first, second, "|") for first, second in rows)], right=(1,))
    lines = page.text.splitlines()
    assert len(lines) == len(rows) + 1
    assert len({columns_of(line[: line.rindex("|")]) for line in lines}) == 1


def test_padding_goes_by_columns() -> None:
    assert [width(pad(text, 6)) for text in ("a", "字", "é", "👩‍👩‍👧")] == [6] * 4
    assert pad("字", 4, right=True) == "  字"


# --- in a real terminal


def seen(place: Place, columns: int, env: Mapping[str, str] | None = None, *arguments: str) -> str:
    """What the program writes to a terminal of that width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = place.start("context", *arguments, env=env, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
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
    assert process.wait(60) == 0
    return b"".join(pieces).decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 200])
def test_the_page_fits_the_terminal(columns: int, place: Place) -> None:
    kept = worked(place, count=30)
    kept.history.say(user("继续：" + "全角字符" * 80))
    kept.closed()
    painted = seen(place, columns)
    lines = [_STYLES.sub("", line) for line in painted.splitlines()]
    assert "\x1b[36m" in painted
    assert max(map(columns_of, lines)) in (columns, columns - 1), "as wide as it is, and no wider"
    for plain in (
        seen(place, columns, {"NO_COLOR": "1"}),
        seen(place, columns, {"TERM": "dumb"}),
        seen(place, columns, None, "--no-color"),
    ):
        assert "\x1b" not in plain
        assert [line.split("ago")[0] for line in plain.splitlines()] == [line.rstrip().split("ago")[0] for line in lines]


def test_a_pipe_gets_everything_and_no_colour(place: Place) -> None:
    kept = Kept(place)
    kept.history.say(user("long " * 30 + "end"))
    kept.closed()
    done = place.run("context")
    assert "long end" in done.out
    assert "\x1b" not in done.out
    config = place.home / "dragoman" / "config.toml"
    config.write_text('color = "always"', encoding="utf-8")
    assert "\x1b[1m" in place.run("context").out


def test_a_locale_without_our_signs(place: Place) -> None:
    worked(place).closed()
    done = place.run("context", env={"LC_ALL": "C", "LANG": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.code == 0
    assert done.out.isascii()
    assert "###" in done.out
