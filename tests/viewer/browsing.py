"""A page of `dragoman view` in Debian's Chromium, and what must hold of every page, whatever a test is about: nothing is asked of another
address, no script fails, nothing is refused by the page's policy, and no dialog opens."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from program import Place
from system_parts import require_program

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 60_000
expect.set_options(timeout=WAIT_MS)
COUNT_VIOLATIONS = (
    "window.violations = []; addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective));"
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of the system: none is ever downloaded."""
    path = require_program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Serving:
    """`dragoman view` under way."""

    def __init__(self, place: Place, *arguments: str, **options: Any) -> None:
        self.process = place.start("view", "--no-open", *arguments, stdin=subprocess.PIPE, **options)
        self.first = self.read_address()
        self.url = self.first.partition("#")[0]

    def read_address(self) -> str:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline().decode():
            if found := re.search(r"https?://[^\s]+[^\s.]", line):
                return found.group()
        raise AssertionError(self.process.stderr.read().decode() if self.process.stderr else "it ended")

    def address(self, to: str = "/") -> str:
        """A new address that works once, of this page."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        found = self.read_address()
        return re.sub(r"#[^?]*", f"#{to}", found)

    def stop(self) -> int:
        self.process.terminate()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return self.process.wait(60)


@contextmanager
def serving(place: Place, *arguments: str, **options: Any) -> Iterator[Serving]:
    server = Serving(place, *arguments, **options)
    try:
        yield server
    finally:
        server.stop()


class Watched:
    """A context of the browser, and what went wrong in its pages."""

    def __init__(self, browser: Browser, home: str, **options: Any) -> None:
        self.home = home
        self.faults: list[str] = []
        self.asked = 0
        self.context: BrowserContext = browser.new_context(**options)
        self.context.set_default_timeout(WAIT_MS)
        self.context.add_init_script(COUNT_VIOLATIONS)
        self.context.on("request", self._note_request)
        self.context.on("page", self._watch)

    def _note_request(self, request: Request) -> None:
        self.asked += 1
        if not request.url.startswith((self.home, "blob:", "data:")):
            self.faults.append(f"asked elsewhere: {request.url}")

    def _watch(self, page: Page) -> None:
        page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        page.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("console", lambda message: self.faults.append(f"console: {message.text}") if message.type == "error" else None)

    def open(self, url: str) -> Page:
        page = self.context.new_page()
        page.goto(url)
        return page

    def close(self) -> None:
        violations = [each for page in self.context.pages for each in page.evaluate("window.violations ?? []")]
        self.context.close()
        assert (self.faults, violations) == ([], [])


@contextmanager
def watched(browser: Browser, server: Serving, **options: Any) -> Iterator[Watched]:
    found = Watched(browser, server.url, **options)
    try:
        yield found
    except BaseException:
        found.context.close()
        raise
    found.close()


def settle(page: Page) -> None:
    """Wait until what was asked for is there: the page says while it waits for something."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(page.locator("main").first).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)


def wait_until(holds: Any, what: str) -> None:
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def session_files(place: Place) -> list[Path]:
    return sorted(Path(place.home).rglob("sessions/*/*.jsonl"), key=lambda path: path.stat().st_mtime)
