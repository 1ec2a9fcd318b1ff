"""A session that another process writes streams into the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from program import Place, service
from viewer.browsing import serving, session_files, wait_until, watched


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    yield found
    found.close()


def test_what_another_process_writes_streams_in(place: Place, browser: Browser) -> None:
    script = 'call: todo {"items": [{"content": "Look", "status": "in_progress"}]}\n---\ntext: Here I stop.\nstall\n---\ntext: Second.'
    with service(script) as place.service, serving(place) as server, watched(browser, server) as view:
        running = place.start("-m", "anthropic/claude-opus-5", "-p", "Begin.")
        place.service.expect(2)
        wait_until(lambda: session_files(place), "there is no session")
        page = view.open(server.address())
        page.locator(".row.session a.title").click()
        expect(page.locator(".row.prompt")).to_have_count(1)
        expect(page.locator(".row.call")).to_have_count(1)
        expect(page.get_by_text("running", exact=True)).to_be_visible()
        running.terminate()
        running.communicate(timeout=60)
        expect(page.locator(".head .last-run")).to_have_text("The run was cancelled.")
        expect(page.get_by_text("running", exact=True)).to_have_count(0)
        done = place.run("--resume", "-p", "Go on.")
        assert done.code == 0, done
        expect(page.locator(".row.prompt")).to_have_count(2)
        expect(page.locator(".markdown").last).to_have_text("Second.")
        expect(page.locator(".head .last-run")).to_have_count(0)


def test_running_is_shown_where_a_run_is_running_and_only_there(place: Place, browser: Browser) -> None:
    script = 'text: Fine.\n---\nerror: 401 "invalid x-api-key"\n---\ncall: list_directory {"path": "."}\n---\ntext: I will\nstall: 1'
    with service(script) as place.service, serving(place) as server, watched(browser, server) as view:
        assert place.run("-m", "anthropic/claude-opus-5", "-p", "One that is over").code == 0
        assert place.run("-m", "anthropic/claude-opus-5", "-p", "One that failed").code == 41
        process = place.start("-m", "anthropic/claude-opus-5", "-p", "One under way")
        place.service.expect(4)
        page = view.open(server.address())
        rows = page.locator(".row.session")
        expect(rows).to_have_count(3)
        expect(page.locator(".live.running")).to_have_count(1)
        expect(rows.filter(has_text="One under way").locator(".live.running")).to_have_text("running")
        expect(rows.filter(has_text="One that failed").locator(".last-run")).to_contain_text(
            "The run ended with an error: anthropic: invalid"
        )
        for title in ("One that is over", "One that failed"):
            other = view.open(server.address())
            other.get_by_role("link", name=title).click()
            expect(other.locator(".head[data-connection=live]")).to_be_visible()
            expect(other.get_by_text("running", exact=True)).to_have_count(0)
        expect(other.locator(".row.notice").last).to_contain_text("The run ended with an error: anthropic: invalid x-api-key")
        page.get_by_role("link", name="One under way").click()
        expect(page.locator(".head .live.running")).to_have_text("running")
        process.kill()
        process.communicate(timeout=60)
        expect(page.locator(".head .last-run")).to_have_text("The run was broken off: its end is not on the record.")
        expect(page.get_by_text("running", exact=True)).to_have_count(0)


def test_more_pages_than_a_browser_opens_connections_are_open_at_once(place: Place, browser: Browser) -> None:
    with service("text: One.\n---\ntext: Two.") as place.service:
        assert place.run("-m", "anthropic/claude-opus-5", "-p", "First.").code == 0
        with serving(place) as server, watched(browser, server) as view:
            pages = []
            for _ in range(8):
                page = view.open(server.address())
                page.locator(".row.session a.title").click()
                expect(page.locator(".head[data-connection=live]")).to_be_visible()
                show(page, "hidden")  # behind the next one
                pages.append(page)
            assert place.run("--resume", "-p", "Second.").code == 0
            show(pages[0], "visible")
            expect(pages[0].locator(".markdown").last).to_have_text("Two.")
            expect(pages[1].get_by_text("Two.")).to_have_count(0)


def show(page: Page, state: str) -> None:
    """A tab that comes to the front, or goes behind another: without a window there is neither."""
    page.evaluate(
        "state => { Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        state,
    )


def test_a_log_that_is_replaced_is_read_anew_and_one_that_is_torn_waits(place: Place, browser: Browser) -> None:
    with service("text: One.\n---\ntext: Two.") as place.service:
        place.run("-m", "anthropic/claude-opus-5", "-p", "First.")
        [log] = session_files(place)
        whole = log.read_bytes()
        place.run("--resume", "-p", "Second.")
        longer = log.read_bytes()
    assert longer.startswith(whole)
    torn = longer.index(b"\n", longer.index(b"Two.")) - 20  # within the line of the answer
    log.write_bytes(whole)
    with serving(place) as server, watched(browser, server) as view:
        page = view.open(server.address())
        page.locator(".row.session a.title").click()
        expect(page.locator(".row.prompt")).to_have_count(1)
        with log.open("ab") as file:
            file.write(longer[len(whole) : torn])
        expect(page.locator(".row.prompt")).to_have_count(2)
        expect(page.get_by_text("Two.")).to_have_count(0)  # its line is not whole yet
        with log.open("ab") as file:
            file.write(longer[torn:])
        expect(page.get_by_text("Two.", exact=True)).to_have_count(1)
        beside = log.with_suffix(".new")
        beside.write_bytes(whole)
        beside.replace(log)
        expect(page.locator(".row.prompt")).to_have_count(1)
