"""Everybody can use the pages: by keyboard alone, on a phone, in the dark, in Chinese, with a screen reader."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from certificates import Authority
from dragoman.loop.history import History
from dragoman.sessions.store import FileStore
from dragoman.values.messages import Message, Response, Text, user
from dragoman.values.usage import Usage
from program import Place
from viewer.browsing import Serving, Watched, serving, session_files, settle, watched
from viewer.conftest import Shown
from viewer.test_hostile import write_answers

AXE = Path(__file__).parents[2] / ".venv" / "node" / "node_modules" / "axe-core" / "axe.min.js"
VIEWS = ("", "/context", "/files", "/r/REQUEST", "/r/REQUEST?view=body", "/r/REQUEST?view=difference")


def require_axe() -> str:
    if not AXE.is_file():
        reason = "axe-core is not there: make conformance"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return AXE.read_text(encoding="utf-8")


def serious(page: Page, source: str) -> list[str]:
    """What axe finds serious or critical, each with where it is."""
    page.evaluate(source + ";0")
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then(result => result.violations)")
    return [f"{each['id']}: {each['nodes'][0]['html'][:150]}" for each in found if each["impact"] in ("serious", "critical")]


def session_of(shown: Shown) -> str:
    return session_files(shown.place)[-1].stem


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_fault(browser: Browser, server: Serving, shown: Shown, scheme: str) -> None:
    source = require_axe()
    home = f"{server.url}#/s/{session_of(shown)}"
    with watched(browser, server, color_scheme=scheme) as view:
        page = view.open(server.address())
        expect(page.locator(".row.session")).to_have_count(1)
        found = {"list": serious(page, source)}
        page.get_by_label("Search titles").fill("no such words")
        expect(page.locator(".row.session")).to_have_count(0)
        found["an empty list"] = serious(page, source)
        page.goto(home)
        request = page.get_by_role("link", name="What the model was told").nth(1).get_attribute("href")
        assert request is not None
        for rest in VIEWS:
            page.goto(home + rest.replace("REQUEST", request.rpartition("/")[2]))
            settle(page)
            if not rest:
                page.keyboard.press("e")
                page.keyboard.press("?")
            found[rest] = serious(page, source)
        page.goto(f"{server.url}#/compare/{session_of(shown)}/{session_of(shown)}")
        settle(page)
        found["compare"] = serious(page, source)
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize("width", [375, 1200])
def test_no_page_is_wider_than_its_window(browser: Browser, server: Serving, shown: Shown, width: int) -> None:
    home = f"{server.url}#/s/{session_of(shown)}"
    with watched(browser, server, viewport={"width": width, "height": 700}) as view:
        page = view.open(server.address())
        expect(page.locator(".row.session")).to_have_count(1)
        wide = {"list": page.evaluate("document.documentElement.scrollWidth")}
        page.goto(home)
        request = page.get_by_role("link", name="What the model was told").nth(1).get_attribute("href")
        assert request is not None
        for rest in VIEWS:
            page.goto(home + rest.replace("REQUEST", request.rpartition("/")[2]))
            settle(page)
            if not rest:
                page.keyboard.press("e")
            wide[rest] = page.evaluate("document.documentElement.scrollWidth")
    assert {name: each for name, each in wide.items() if each > width} == {}


def test_the_keyboard_alone_suffices(view: Watched, server: Serving) -> None:
    """From the list to a request and back, without a mouse."""
    page = view.open(server.address())
    expect(page.locator(".row.session")).to_have_count(1)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "title":
            break
    page.keyboard.press("Enter")
    expect(page.locator(".row.prompt").first).to_be_visible()
    page.keyboard.press("n")
    expect(page.locator(".row.selected")).to_contain_text("When did the ship")
    page.keyboard.press("n")
    expect(page.locator(".row.selected")).to_contain_text("Check the tides")
    page.keyboard.press("p")
    for _ in range(5):
        page.keyboard.press("j")
    expect(page.locator(".row.selected")).to_contain_text("read_file log.txt")
    page.keyboard.press("o")
    expect(page.locator(".row.selected .call-body")).to_contain_text("reached Muscat")
    page.keyboard.press("y")
    expect(page).to_have_url(re.compile(r"/e/a1\.\d+$"))
    page.keyboard.press("r")
    expect(page.locator("table.items")).to_be_visible()
    page.keyboard.press("]")
    page.keyboard.press("4")
    expect(page.locator(".diff")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".row.selected")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("tides")
    expect(page.get_by_text(re.compile("rows? found"))).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    expect(page.locator(".row.session")).to_have_count(1)


def test_a_link_leads_to_its_entry(view: Watched, server: Serving) -> None:
    page = view.open(server.address())
    page.locator(".row.session a.title").click()
    link = page.locator(".row.call .permalink").last.get_attribute("href")
    assert link is not None
    page.goto(f"{server.url}{link}")
    expect(page.locator(".row.selected")).to_contain_text("todo")


@pytest.mark.parametrize("width", [375, 1200])
def test_a_row_is_found_however_long_those_before_it_are(tmp_path: Path, browser: Browser, width: int) -> None:
    place = Place(tmp_path)
    paragraphs = "\n\n".join(f"Paragraph {number}, long enough to take more than one line of a telephone." for number in range(20))
    session_id = write_answers(place, *[f"Answer {number} begins.\n\n{paragraphs}" for number in range(15)])
    with serving(place) as server, watched(browser, server, viewport={"width": width, "height": 700}) as view:
        page = view.open(server.address(f"/s/{session_id}/e/23"))
        expect(page.locator(".row.selected")).to_be_in_viewport()
        expect(page.get_by_text("Answer 10 begins.")).to_be_in_viewport()
        page.reload()
        expect(page.get_by_text("Answer 10 begins.")).to_be_in_viewport()
        other = view.open(server.address(f"/s/{session_id}"))
        expect(other.get_by_text("Answer 0 begins.")).to_be_visible()
        other.keyboard.press("G")
        expect(other.get_by_text("Answer 14 begins.")).to_be_in_viewport()
        for _ in range(3):
            other.keyboard.press("p")
        expect(other.locator(".row.selected")).to_be_in_viewport()
        expect(other.get_by_text("Answer 12 begins.")).to_be_in_viewport()
    place.close()


def test_the_request_of_a_row_is_one_that_was_sent_or_the_one_that_comes(tmp_path: Path, browser: Browser) -> None:
    place = Place(tmp_path)
    stored = FileStore(place.home / "dragoman" / "data" / "sessions").create(str(place.work))
    history = History(stored.journal, entries=stored.loaded.entries)
    history.configure("claude-opus-5", system="Help.", deployment="anthropic")
    for prompt in ("First.", "Second.", "Third."):
        history.say(user(prompt))
        if prompt == "Second.":  # as it is done in the middle of a run, when the window fills up
            history.compress(4, user("The first was answered."), 100, 50, model="claude-opus-5", usage=Usage(100, 0, 0, 20))
        if prompt != "Third.":
            history.answer(Response(Message("assistant", (Text(f"{prompt} Answered."),)), "stop", usage=Usage(10, 100, 0, 5)))
    stored.journal.close()
    with serving(place) as server, watched(browser, server) as view:
        page = view.open(server.address(f"/s/{stored.session_id}"))
        exact = page.locator("pre.exact")
        for prompt in ("Second.", "Third."):
            expect(page.locator(".row.prompt")).to_have_count(3)
            page.locator(".row.prompt").filter(has_text=prompt).click()
            page.keyboard.press("r")
            expect(page.locator("table.items")).to_be_visible()
            page.keyboard.press("2")
            expect(exact).to_contain_text("The first was answered.")
            expect(exact).to_contain_text(prompt)
            page.keyboard.press("Escape")
    place.close()


def test_keys_that_come_before_the_page_is_drawn_all_count(view: Watched, server: Serving, shown: Shown) -> None:
    page = view.open(server.address())
    page.locator(".row.session a.title").click()
    page.get_by_role("link", name="What the model was told").first.click()
    expect(page.locator("table.items")).to_be_visible()
    page.evaluate("for (const key of [']', ']', ']', '[', '2']) dispatchEvent(new KeyboardEvent('keydown', {key}))")
    exact = page.locator("pre.exact")
    expect(exact).to_be_visible()
    assert exact.evaluate("each => each.textContent").encode() == shown.sent[2]


def test_back_leads_to_where_one_was(view: Watched, server: Serving) -> None:
    page = view.open(server.address())
    page.locator(".row.session a.title").click()
    expect(page.locator(".row.prompt")).to_have_count(2)
    page.keyboard.press("G")
    page.get_by_role("link", name="What the model was told").last.click()
    expect(page.locator("table.items")).to_be_visible()
    page.go_back()
    expect(page.locator(".row.selected")).to_contain_text("Answer")
    expect(page.locator(".row.selected")).to_be_in_viewport()
    page.keyboard.press("r")
    expect(page.locator("table.items")).to_be_visible()
    page.go_back()
    expect(page.locator(".row.selected")).to_be_in_viewport()


def test_what_was_said_is_found_from_the_list(view: Watched, server: Serving) -> None:
    page = view.open(server.address())
    page.get_by_label("Search titles").fill("high water tides")
    page.keyboard.press("Enter")
    expect(page.locator(".row.session")).to_have_count(0)
    page.get_by_label("Search titles").fill("tides are checked")
    page.keyboard.press("Enter")
    expect(page.locator(".row.session")).to_contain_text("The tides are checked")
    page.locator(".row.session a.title").click()
    expect(page.locator(".row.selected")).to_be_visible()


def test_the_dark_and_the_light_are_different(browser: Browser, server: Serving) -> None:
    seen = set()
    for scheme in ("dark", "light"):
        with watched(browser, server, color_scheme=scheme) as view:
            page = view.open(server.address())
            expect(page.locator(".row.session")).to_have_count(1)
            seen.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(seen) == 2


def test_it_speaks_chinese(browser: Browser, shown: Shown) -> None:
    with serving(shown.place, "--lang", "zh") as server, watched(browser, server) as view:
        page = view.open(server.address())
        expect(page.get_by_role("heading", name="会话")).to_be_visible()
        assert page.evaluate("document.documentElement.lang") == "zh-CN"
        page.locator(".row.session a.title").click()
        expect(page.get_by_role("link", name="模型看到了什么").first).to_be_visible()
        page.keyboard.press("e")
        for rest in ("", "/context", "/files"):
            page.goto(page.url.partition("#")[0] + "#/s/" + session_of(shown) + rest)
            settle(page)
            text = page.locator("main").inner_text() + page.locator("header").inner_text()
            left = set(
                re.findall(r"\b(Timeline|Context|Files|Prompt|Answer|Output|Input|requests?|entry|tokens? (?:in|written)|cost)\b", text)
            )
            assert left == set(), rest


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Place]:
    from program import service

    place = Place(tmp_path)
    with service("text: Short.\n---\ntext: Rather longer.") as place.service:
        for model in ("anthropic/claude-opus-5", "gemini/gemini-3.8-flash"):
            assert place.run("-m", model, "-p", "The same prompt.").code == 0
    yield place
    place.close()


def test_two_sessions_are_compared(two: Place, browser: Browser) -> None:
    with serving(two) as server, watched(browser, server) as view:
        page = view.open(server.address())
        expect(page.locator(".row.session")).to_have_count(2)
        expect(page.locator(".row.session b").filter(has_text="≈ $")).to_have_count(2)  # also where several services have the model
        page.get_by_role("combobox", name="Model").select_option("claude-opus-5")
        expect(page.locator(".row.session")).to_have_count(1)
        page.get_by_role("combobox", name="Model").select_option("")
        for box in page.get_by_role("checkbox").all():
            box.check()
        page.get_by_role("link", name="Compare the two").click()
        expect(page.get_by_role("row", name=re.compile("^Model"))).to_contain_text("claude-opus-5")
        expect(page.get_by_role("row", name=re.compile("^Model"))).to_contain_text("gemini-3.8-flash")
        expect(page.locator(".pair")).to_contain_text("Short.")
        expect(page.locator(".pair")).to_contain_text("Rather longer.")


def test_elsewhere_it_wants_a_password_over_tls(tmp_path: Path, browser: Browser) -> None:
    """127.0.0.2 is an address of others as far as the program knows."""
    place = Place(tmp_path)
    certificate = str(Authority(tmp_path).server_file("127.0.0.2"))
    place.more_env["DRAGOMAN_VIEW_PASSWORD"] = "a long enough password"
    files = ("--tls-cert", certificate, "--tls-key", certificate)
    with serving(place, "--host", "127.0.0.2", *files) as server, watched(browser, server, ignore_https_errors=True) as view:
        assert server.first.startswith("https://127.0.0.2:")
        assert "token" not in server.first
        page = view.open(server.first)
        page.get_by_label("Password").fill("a wrong password")
        page.get_by_role("button", name="Enter").click()
        expect(page.get_by_role("alert")).to_have_text("The password is wrong.")
        page.get_by_label("Password").fill("a long enough password")
        page.get_by_role("button", name="Enter").click()
        expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
        view.faults = [each for each in view.faults if "401" not in each]
    place.close()
