"""`sessions export --as html`: the same page in one file, opened from disk with the network cut."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, expect

from dragoman.conversation.session_page.one_file import MODULES, change_of_text, one_module
from program import KEY
from viewer.browsing import Watched
from viewer.conftest import Shown


@pytest.fixture(scope="module")
def page_file(shown: Shown, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "session.html"
    done = shown.place.run("sessions", "export", "latest", "-o", str(path))
    assert done.code == 0, done
    return path


def test_it_opens_from_disk_without_a_network_and_is_the_same_page(page_file: Path, browser: Browser, shown: Shown) -> None:
    view = Watched(browser, page_file.as_uri(), viewport={"width": 1200, "height": 900}, offline=True)
    page = view.open(page_file.as_uri())
    expect(page.get_by_role("heading", level=1)).to_have_text("When did the ship reach Muscat? Write it into harbour.md.")
    expect(page.locator(".row.call")).to_have_count(6)
    page.get_by_role("button", name="edit harbour.md").click()
    expect(page.locator(".call-body .diff .come").last).to_contain_text("16:31")
    for number in (0, 3, 5):
        page.goto(f"{page_file.as_uri()}#/")
        page.get_by_role("link", name="What the model was told").nth(number).click()
        expect(page.locator("table.items")).to_contain_text("system prompt")
        expect(page.locator("table.items tbody tr").first.locator("td").nth(4)).to_contain_text("$")
        page.keyboard.press("2")
        exact = page.locator("pre.exact")
        expect(exact).to_be_visible()
        assert exact.evaluate("each => each.textContent").encode() == shown.sent[number]
        page.get_by_role("link", name="gemini", exact=True).click()
        expect(exact).to_contain_text("contents")
    page.get_by_role("link", name="Files", exact=True).click()
    expect(page.locator(".sides").last.locator(".come")).to_have_text("High water: 04:05 and 16:31")
    page.get_by_role("link", name="Context", exact=True).click()
    expect(page.locator(".chart canvas")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("never"))).to_contain_text("100%")
    page.goto(f"{page_file.as_uri()}#/s/another")
    expect(page.get_by_role("alert")).to_have_text("this file does not hold it; dragoman view shows it")
    view.close()


def test_it_runs_what_is_its_own_and_loads_nothing(page_file: Path) -> None:
    text = page_file.read_text()
    policy = text.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "connect-src" not in policy  # nothing at all, then
    scripts = re.findall(r"<script(?: type=\"module\")?>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 3
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy
    without = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", without)
    assert "import {" not in one_module()
    assert KEY not in text


def test_every_module_of_a_session_is_in_it(page_file: Path) -> None:
    named = set(re.findall(r"from \"\./(\w+\.js)\"", "".join(path.read_text() for path in STATIC.glob("*.js") if path.name in MODULES)))
    assert named - set(MODULES) == set()


STATIC = Path(__file__).parents[2] / "src" / "dragoman" / "conversation" / "session_page" / "static"


@given(st.text(alphabet=st.sampled_from("ab\n𝄞é")), st.text(alphabet=st.sampled_from("ab\n𝄞é")))
def test_a_request_is_put_together_from_what_changed(before: str, after: str) -> None:
    change = change_of_text(before, after)
    as_utf16 = before.encode("utf-16-le")
    kept = as_utf16[: 2 * change["keep"]].decode("utf-16-le")
    end = as_utf16[len(as_utf16) - 2 * change["end"] :].decode("utf-16-le") if change["end"] else ""
    assert kept + change["text"] + end == after


def test_data_cannot_end_its_place_in_the_page(page_file: Path) -> None:
    text = page_file.read_text()
    data = text.split('id="session-data">')[1].split("</script>")[0]
    assert "<" not in data


def test_an_item_that_many_requests_share_is_in_it_once(page_file: Path) -> None:
    data = json.loads(page_file.read_text().split('id="session-data">')[1].split("</script>")[0])
    [looks] = data["looks"].values()
    assert len(looks["items"]) == 6
    abouts = [part["about"] for part in looks["item_parts"] if part["kind"] == "tools"]
    assert sorted(abouts) == sorted(set(abouts))
    assert all(row[0] < len(looks["item_parts"]) for each in looks["items"].values() for row in each["items"])
