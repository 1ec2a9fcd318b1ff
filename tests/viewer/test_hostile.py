"""Whatever a session holds stays text: no script runs, no dialog opens, nothing is asked for, and nothing pretends to be something else."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from dragoman.loop.history import History
from dragoman.sessions.store import FileStore
from dragoman.values.messages import Message, Opaque, Response, Text, Thought, ToolCall, tool_result, user
from dragoman.values.record import FileChange
from dragoman.values.usage import Usage
from program import Place, service
from viewer.browsing import serving, session_files, settle, watched

EVIL = (
    "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)><iframe src='javascript:alert(4)'></iframe>"
    '<a href="javascript:alert(5)">x</a>[y](javascript:alert(6)) [z](data:text/html,<script>alert(7)</script>) '
    "![p](https://evil.example/p.png) `<b>` **<i>bold</i>** {{x}} ${alert(8)} </script></textarea><!-- "
    "\u202etxt.exe\u202c \u2066\u200b\ufeff \x1b[31m <base href=https://evil.example> <meta http-equiv=refresh content='0;url=https://evil.example'>"
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    history = History()
    store = FileStore(found.home / "dragoman" / "data" / "sessions")
    stored = store.create(str(found.work))
    history = History(stored.journal, entries=stored.loaded.entries)
    history.configure(f"model {EVIL}", system=EVIL, deployment="anthropic")
    history.title(f"title {EVIL}")
    history.say(user(EVIL))
    call = ToolCall("c1", "run_shell", json.dumps({"command": EVIL, EVIL: EVIL}))
    named = ToolCall("c2", f"tool {EVIL}", EVIL)
    edit = ToolCall("c3", "edit", json.dumps({"file_path": EVIL, "old_string": EVIL, "new_string": EVIL}))
    said = Message(
        "assistant",
        (
            Thought(EVIL),
            Text(f"# {EVIL}\n\n- {EVIL}\n\n| {EVIL} |\n|---|\n| {EVIL} |\n\n```{EVIL}\n{EVIL}\n```\n> {EVIL}"),
            call,
            named,
            edit,
        ),
    )
    history.answer(Response(said, "stop", usage=Usage(100, 10, 0, 5)), EVIL)
    for each in (call, named, edit):
        history.start_tool(each)
        history.finish_tool(tool_result(each, EVIL), display=f"--- {EVIL}\n+++ {EVIL}\n@@ {EVIL}\n+{EVIL}\n-{EVIL}")
    history.change_files("c3", [FileChange(f"/tmp/{EVIL.replace('/', '_')}", "a" * 64, "b" * 64)])
    history.answer(Response(Message("assistant", (Text(EVIL),)), "stop", usage=Usage(10, 100, 0, 5)))
    stored.journal.close()
    yield found
    found.close()


def test_nothing_of_a_session_acts(place: Place, browser: Browser) -> None:
    with serving(place) as server, watched(browser, server) as view:
        page = view.open(server.address())
        page.set_viewport_size({"width": 1280, "height": 9000})  # rows far below what is seen are not drawn
        expect(page.locator(".row.session")).to_have_count(1)
        page.locator(".row.session a.title").click()
        expect(page.locator(".row.call")).to_have_count(3)
        page.keyboard.press("e")
        expect(page.locator(".call-body")).to_have_count(3)
        page.get_by_role("button", name="Thinking").click()
        assert (
            page.locator("main script, main iframe, main img, main svg, main base, main meta, main [onerror], main [onload]").count() == 0
        )
        assert page.evaluate("[...document.querySelectorAll('main a')].filter(a => !/^(https?|http):/.test(a.href)).length") == 0
        text = page.locator("main").inner_text()
        assert not set(text) & set("\u202e\u202c\u2066\u200b\ufeff\x1b"), "what cannot be seen is shown by its number"
        assert "⟨202e⟩" in text
        home = page.url.partition("#")[2]
        for rest in ("/context", "/files"):
            page.goto(f"{server.url}#{home}{rest}")
            settle(page)
        page.goto(f"{server.url}#{home}")
        page.get_by_role("link", name="What the model was told").first.click()
        expect(page.locator("table.items")).to_be_visible()
        for key in "234":
            page.keyboard.press(key)
            settle(page)
        page.goto(f"{server.url}#/compare/{home.rpartition('/')[2]}/{home.rpartition('/')[2]}")
        expect(page.get_by_role("heading", name="Two sessions")).to_be_visible()
        settle(page)


def test_nothing_of_a_conversation_acts(tmp_path: Path, browser: Browser) -> None:
    place = Place(tmp_path)
    (place.home / "dragoman").mkdir()
    (place.home / "dragoman" / "config.toml").write_text('model = "anthropic/claude-opus-5"')
    command = json.dumps({"command": EVIL, "writes": True})
    write = json.dumps({"file_path": "a<b>\u202e.txt", "content": EVIL})
    script = f"text: {json.dumps(EVIL)}\ncall: run_shell {command}\n---\ncall: write_file {write}\n---\ntext: {json.dumps(EVIL)}"
    with service(script) as place.service, serving(place, "--talk") as server, watched(browser, server) as view:
        page = view.open(server.address("/talk"))
        page.get_by_role("button", name="New conversation").click()
        page.get_by_label("Write a prompt or a /command").fill(EVIL)
        page.keyboard.press("Enter")
        question = page.get_by_role("group", name="Question:")
        expect(question.locator(".code")).to_contain_text("<script>alert(1)</script>")
        expect(question.locator(".code")).to_contain_text("<U+202E>txt.exe")
        question.get_by_role("button", name="no, because").click()
        page.get_by_label("Why not").fill(EVIL)
        question.get_by_role("button", name="Send").click()
        expect(question.locator(".come")).to_contain_text("<script>alert(1)</script>")
        question.get_by_role("button", name="no", exact=True).click()
        expect(page.locator(".markdown")).to_have_count(2)
        for line in (f"/title {EVIL[:100]}", f"/model {EVIL[:100]}"):
            expect(page.get_by_role("button", name="Stop")).to_have_count(0)
            page.get_by_label("Write a prompt or a /command").fill(line)
            page.keyboard.press("Enter")
            expect(page.get_by_label("Write a prompt or a /command")).to_have_value("")
        assert page.locator("main script, main iframe, main img, main svg, main base, main meta, main [onerror]").count() == 0
        assert not set(page.locator("main").inner_text()) & set("\u202e\u202c\u2066\u200b\ufeff\x1b")
    place.close()


SHAPES = {
    "quotes in quotes": ">" * 30_000 + " x",
    "lists in lists": "\n".join(" " * (2 * depth) + "- x" for depth in range(1500)),
    "links that never end": "[a](" * 50_000,
    "a table of one row": "|" * 200_000 + "\n|-|",
    "too many rows": "|a|\n|-|\n" + "|\n" * 100_000,
    "brackets": "[" * 100_000,
    "stars": "**a" + "*a" * 60_000,
    "marks upon one letter": "a" + "\u0301" * 60_000,
}


def write_answers(place: Place, *texts: str) -> str:
    stored = FileStore(place.home / "dragoman" / "data" / "sessions").create(str(place.work))
    history = History(stored.journal, entries=stored.loaded.entries)
    history.configure("claude-opus-5", system="Help.", deployment="anthropic")
    for text in texts:
        history.say(user("Go on."))
        history.answer(Response(Message("assistant", (Text(text),)), "stop", usage=Usage(10, 100, 0, 5)))
    stored.journal.close()
    return stored.session_id


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_of_any_shape_leaves_the_page_usable(tmp_path: Path, browser: Browser, shape: str) -> None:
    place = Place(tmp_path)
    session_id = write_answers(place, SHAPES[shape], "The next answer.")
    with serving(place) as server, watched(browser, server) as view:
        page = view.open(server.address(f"/s/{session_id}"))
        expect(page.locator(".markdown").first).to_be_visible()
        page.keyboard.press("G")
        expect(page.get_by_text("The next answer.")).to_be_visible()
    place.close()


def test_a_log_with_numbers_of_400_digits_leaves_the_list_usable(tmp_path: Path, browser: Browser) -> None:
    place = Place(tmp_path)
    write_answers(place, "Good.")
    for digits in ("9" * 400, "-" + "9" * 400):
        write_answers(place, "Wild.")
        log = session_files(place)[-1]
        wild = re.sub(rb'"(timestamp_ms|\w+_tokens|window)":\d+', rb'"\1":' + digits.encode(), log.read_bytes())
        bodies = [line.rpartition(b',"crc"')[0] for line in wild.splitlines()]
        log.write_bytes(b"".join(b'%b,"crc":"%08x"}\n' % (body, zlib.crc32(body)) for body in bodies))
    with serving(place) as server, watched(browser, server) as view:
        page = view.open(server.address())
        expect(page.locator(".row.session")).to_have_count(3)
        for row in range(3):
            page.locator(".row.session a.title").nth(row).click()
            expect(page.locator(".row.prompt")).to_have_count(1)
            page.keyboard.press("s")
    place.close()


def test_a_log_that_makes_no_request_is_exported_without_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    stored = FileStore(place.home / "dragoman" / "data" / "sessions").create(str(place.work))
    history = History(stored.journal, entries=stored.loaded.entries)
    history.configure("claude-opus-5", system="Help.", deployment="anthropic")
    for opaque in (Opaque("anthropic", "["), Opaque("anthropic", '{"a":' * 5000 + "1" + "}" * 5000)):
        history.say(user("Go on."))
        history.answer(Response(Message("assistant", (Thought("So.", opaque), Text("Yes."))), "stop", usage=Usage(10, 100, 0, 5)))
    stored.journal.close()
    done = place.run("sessions", "export", "latest", "-o", str(tmp_path / "out.html"))
    assert done.code == 0, done
    assert "Yes." in (tmp_path / "out.html").read_text()
    place.close()


def test_what_cannot_be_seen_is_shown_as_in_the_terminal_and_sent_bytes_stay(tmp_path: Path, browser: Browser) -> None:
    family, word = "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    text = f"a\U000e0041\u202eb {family} \u2764\ufe0f {word} x\u200dy"
    place = Place(tmp_path)
    session_id = write_answers(place, text, "Second.")
    with serving(place) as server, watched(browser, server) as view:
        page = view.open(server.address(f"/s/{session_id}"))
        expect(page.locator(".markdown").first).to_have_text(f"a⟨e0041⟩⟨202e⟩b {family} \u2764\ufe0f {word} x⟨200d⟩y")
        page.get_by_role("link", name="What the model was told").last.click()
        page.keyboard.press("2")
        exact = page.locator("pre.exact")
        expect(exact.locator(".hidden-sign").first).to_be_visible()
        assert text in exact.evaluate("each => each.textContent")
        page.keyboard.press("3")
        expect(exact).to_contain_text("a⟨e0041⟩⟨202e⟩b")
    place.close()


def test_the_exported_file_acts_as_little(place: Place, browser: Browser, tmp_path: Path) -> None:
    out = tmp_path / "evil.html"
    assert place.run("sessions", "export", "latest", "-o", str(out)).code == 0
    from viewer.browsing import Watched

    view = Watched(browser, out.as_uri(), offline=True)
    page = view.open(out.as_uri())
    expect(page.locator(".row.call")).to_have_count(3)
    page.keyboard.press("e")
    expect(page.locator(".call-body")).to_have_count(3)
    assert page.locator("main script, main iframe, main img, main [onerror]").count() == 0
    view.close()
