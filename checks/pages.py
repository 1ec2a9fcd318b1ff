"""Pictures of the browser's pages for docs/images: a session held against the loopback service, seen in Debian's Chromium.

python -m checks.pages
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
PRUNING = '[context.prune]\nschedule = "request"\ntools = ["read_file"]\nage_minutes = 0\nkeep = 0\n'
ASKED = 'call: write_file {"file_path": "tides.md", "content": "# Tides\\n\\nHigh water: 04:05\\n"}\n---\ntext: Written.'


def main() -> None:
    sys.path[:0] = [str(ROOT / "tests")]
    from program import Place, service
    from viewer.browsing import chromium, serving, settle, watched
    from viewer.shown_session import hold_session

    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder))
        config = place.home / "dragoman" / "config.toml"
        config.parent.mkdir()
        config.write_text(PRUNING)
        hold_session(place)
        config.write_text('model = "anthropic/claude-opus-5"\n')
        size = {"width": 1100, "height": 720}
        with (
            service(ASKED) as place.service,
            chromium() as browser,
            serving(place, "--talk") as server,
            watched(browser, server, viewport=size) as view,
        ):
            page = view.open(server.address())
            page.get_by_role("link", name=re.compile("When did the ship")).click()
            page.locator(".row.call").first.wait_for()
            page.keyboard.press("/")
            page.keyboard.press("Escape")
            for _ in range(7):
                page.keyboard.press("j")
            page.keyboard.press("o")
            take(page, "timeline")
            page.get_by_role("link", name="What the model was told").nth(2).click()
            page.locator(".items").wait_for()
            take(page, "request")
            for name in ("Context", "Files"):
                page.get_by_role("link", name=name, exact=True).click()
                settle(page)
                take(page, name.lower())
            page.goto(f"{server.url}#/talk")
            page.get_by_role("button", name=re.compile("New conversation")).click()
            page.locator("textarea:enabled").fill("Write the tides into tides.md.")
            page.keyboard.press("Enter")
            page.locator(".asks").wait_for()
            take(page, "talk")
        place.close()


def take(page: Page, name: str) -> None:
    page.evaluate("new Promise(done => setTimeout(done, 300))")
    page.screenshot(path=str(IMAGES / f"page-{name}.png"))


if __name__ == "__main__":
    main()
