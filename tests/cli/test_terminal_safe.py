"""What reaches a terminal: no escape sequence that did not come from us, wherever hostile text comes from; and the view that asks."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base.graphemes import width
from dragoman.base.text import one_line, strip_controls
from dragoman.base.visible import escape_hidden
from dragoman.conversation.preview import CONTINUES, break_line
from program import Place, Service, calls, script
from terminals import Terminal, terminal

Serve = Callable[..., Service]
HOSTILE = "\x1b[97;45mX\x1b]0;own\x07\x1b]52;c;eA==\x07\x9b6n\x1bP+q\x1b\\\x1bc\r\x08\x0b\u202eevil\u202c\u2066\u200b\U000e0041"
OURS = re.compile(
    rb"\x1b\[(?:0|1|2|22|31|32|33|36|39)m|\r\x1b\[K|\x1b\[\?2004[hl]|\x1b\[K"  # styles, a line that is replaced, pastes
    rb"|\x1b\[\d*[ACDGPJ@]|\x1b\[[HJ]"  # the line editor's
)
ACTING = re.compile(rb"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\xf3\xa0[\x80\x81].")


def acting(raw: bytes) -> list[bytes]:
    """What acts on a terminal and is not ours."""
    return ACTING.findall(OURS.sub(b"", raw))


@given(st.text(), st.integers(12, 200), st.sampled_from(["", "│ "]))
def test_a_broken_line_holds_every_character(text: str, columns: int, mark: str) -> None:
    line = escape_hidden(text, one_line=True)
    rows = break_line(line, columns, mark)
    assert rows[0].removeprefix(mark) + "".join(row.removeprefix(CONTINUES) for row in rows[1:]) == line
    assert all(width(row) <= columns for row in rows)
    assert all(row.startswith(CONTINUES) for row in rows[1:])


@given(st.text() | st.lists(st.sampled_from([*HOSTILE, "a", " ", "\n", "\t"])).map("".join))
def test_nothing_that_acts_is_left(text: str) -> None:
    for shown in (strip_controls(text), one_line(text), escape_hidden(text), escape_hidden(text, one_line=True)):
        assert acting(shown.encode("utf-8", "replace").replace(b"\n", b"").replace(b"\t", b"")) == []


def hostile_place(place: Place) -> str:
    """A workspace and a session that have the payload wherever something can be named."""
    name = f"n{HOSTILE.replace('/', '')}"
    folder = place.work / name
    folder.mkdir()
    (folder / f"f{name}.txt").write_text(f"{HOSTILE}\n")
    (folder / "AGENTS.md").write_text(HOSTILE)
    (place.work / "AGENTS.md").write_text(f"@{name}.md {HOSTILE}")
    (place.home / ".claude").mkdir()
    (place.home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": [HOSTILE, f"Bash({HOSTILE})"]}}))
    return name


def test_hostile_text_in_a_conversation(place: Place, serve: Serve) -> None:
    name = hostile_place(place)
    command = f"echo '{HOSTILE}'"
    serve(
        script(
            f"thought: {json.dumps(HOSTILE)}\ntext: {json.dumps(HOSTILE)}\n"
            + calls(("read_file", {"file_path": f"{name}/f{name}.txt"}), ("list_directory", {"path": name}), (f"no {HOSTILE}", {})),
            calls(("run_shell", {"command": command, "writes": True})),
            calls(("run_shell", {"command": command, "writes": True, "description": HOSTILE})),
            calls(("write_file", {"file_path": f"{name}/new", "content": HOSTILE * 9})),
            calls(("ask_user", {"question": HOSTILE, "choices": [HOSTILE, "b"]})),
            f"text: {json.dumps(f'The end. {HOSTILE}')}",
            f"error: 400 {json.dumps(HOSTILE)}",
        )
    )
    with terminal(place, "-C", str(place.work / name), size=(40, 60)) as shown:
        shown.expect("Trust this folder?", "(Enter: n): ")
        shown.send("n\n")
        shown.prompt()
        shown.ask("go")
        for key in ("y", "n", "v"):
            shown.expect("Run it?", "run): ")
            shown.send(key)
        shown.expect("run): ")  # the end of the question that is asked again
        shown.send("y")
        shown.expect("Enter for none): ")
        shown.send("1\n")
        shown.expect("The end.")
        shown.prompt()
        for line in ("again", "/approvals", "/tools", "/usage", f"/model {name[:1]}", "/directory", "/context"):
            shown.ask(line)
            shown.prompt()
        assert "<U+001B>[97;45m" in shown.text
        assert "<U+202E>" in shown.text
    assert acting(shown.raw.replace(b"\r\n", b"\n").replace(b"\n\r", b"\n").replace(b"\r", b"")) == []
    assert b"\x1b]" not in shown.raw
    assert b"97;45" not in OURS.sub(b"", shown.raw).replace(b"[97;45m", b"")


COMMANDS = [
    ("sessions",),
    ("sessions", "show", "latest"),
    ("sessions", "search", "go"),
    ("sessions", "export", "latest"),
    ("context",),
    ("config", "--trust"),
    ("doctor", "--offline"),
    ("approvals",),
    ("trust",),
    ("trust", "--revoke"),
    ("models", HOSTILE),
    ("sessions", "show", HOSTILE),
    ("approvals", "revoke", HOSTILE),
    ("-C", HOSTILE),
    ("-p", "again", "--resume"),
    ("-p", "again", "--resume", "--debug"),
]


def _run(place: Place, *arguments: str) -> Terminal:
    with terminal(place, *arguments, model="", size=(40, 100)) as shown:
        shown.ended()
    return shown


def test_hostile_text_in_every_command(place: Place, serve: Serve) -> None:
    name = hostile_place(place)
    folder = place.work / name
    steps = calls(("read_file", {"file_path": f"f{name}.txt"}), (f"no {HOSTILE}", {"x": HOSTILE}))
    answer = f"text: {json.dumps(f'Done. {HOSTILE}')}"
    serve(script(f"text: {json.dumps(HOSTILE)}\n{steps}", *[answer] * 9))
    place.ask(f"go {HOSTILE}".replace("\r", ""), "-C", str(folder))
    data = place.home / "dragoman" / "data"
    (data / "grants.jsonl").write_text(
        json.dumps({"folder": str(folder.resolve()), "key": f"run_shell {HOSTILE}", "session": HOSTILE}) + "\n"
    )
    for command in COMMANDS:
        where = () if command[0] == "-C" else ("-C", str(folder))
        shown = _run(place, *command, *where)
        raw = shown.raw.replace(b"\r\n", b"\n").replace(b"\r\x1b[K", b"")
        assert acting(raw) == [], (command, raw[-3000:])
        assert b"\x1b[97" not in raw, command


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_exports_hold_no_sequence_either(place: Place, serve: Serve, tmp_path: Path, form: str) -> None:
    serve(script(f"text: {json.dumps(HOSTILE)}"))
    place.ask("go")
    place.run("sessions", "export", "latest", "--as", form, "-o", str(tmp_path / "out"))
    assert b"\x1b" not in (tmp_path / "out").read_bytes()
    assert os.path.getsize(tmp_path / "out") > 100


def test_a_long_command_is_marked_row_by_row_and_its_padding_named(place: Place, serve: Serve) -> None:
    command = f"touch harmless{' ' * 300}; touch PWN{'x' * 200}END"
    serve(script(calls(("run_shell", {"command": command, "writes": True})), "text: ok"))
    with terminal(place, size=(40, 60)) as shown:
        shown.prompt()
        shown.ask("go")
        view = shown.expect("Run it?", "run): ")
        shown.send("n")
        shown.prompt()
    rows = [row for row in view.split("\n") if row.startswith(("│ ", CONTINUES))]
    assert "".join(row[2:] for row in rows) == command
    assert all(len(row) < 60 for row in rows)
    assert "300 blanks in a row" in view


def test_a_long_diff_is_folded_and_whole_on_request(place: Place, serve: Serve) -> None:
    content = "".join(f"row {number}\n" for number in range(200))
    serve(script(calls(("write_file", {"file_path": "big.txt", "content": content})), "text: ok"))
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("go")
        view = shown.expect("Run it?", "run): ")
        assert "+row 0\n" in view
        assert "+row 199\n" in view
        assert "+row 100\n" not in view
        assert "148 of 203 lines are not shown" in view
        shown.send("v")
        whole = shown.expect("Run it?", "run): ")
        assert all(f"+row {number}\n" in whole for number in range(200))
        shown.send("n")
        shown.prompt()
    assert not (place.work / "big.txt").exists()
