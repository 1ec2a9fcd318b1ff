"""What the pages show of a session, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from viewer.browsing import Serving, Watched
from viewer.conftest import Shown


def test_the_list_leads_to_the_timeline(view: Watched, server: Serving) -> None:
    page = view.open(server.address())
    expect(page.locator(".row.session")).to_have_count(1)
    assert "token" not in page.url
    row = page.locator(".row.session")
    expect(row).to_contain_text("claude-opus-5")
    expect(row).to_contain_text("≈ $")
    page.get_by_label("Search titles").fill("no such words")
    expect(page.locator(".row.session")).to_have_count(0)
    page.get_by_label("Search titles").fill("")
    page.get_by_role("link", name="When did the ship").click()
    expect(page.locator(".row.prompt").first).to_contain_text("When did the ship reach Muscat?")
    expect(page.locator(".row.prompt")).to_have_count(2)
    expect(page.locator(".row.call")).to_have_count(6)
    expect(page.locator(".markdown table")).to_contain_text("4 March")
    expect(page.locator(".markdown a")).to_have_attribute("rel", re.compile("noreferrer"))
    expect(page.locator(".lanes .lane")).to_have_count(3)
    expect(page.locator("main")).to_contain_text("first words after")


def test_a_page_keeps_its_key_and_another_gets_one_of_its_own(view: Watched, server: Serving) -> None:
    address = server.address()
    page = view.open(address)
    expect(page.locator(".row.session")).to_have_count(1)
    page.reload()
    expect(page.locator(".row.session")).to_have_count(1)
    page.goto(f"{server.url}#/")
    assert page.evaluate("document.cookie") == ""
    other = view.open(server.address())
    expect(other.locator(".row.session")).to_have_count(1)


def test_an_address_that_was_used_says_what_to_do(view: Watched, server: Serving) -> None:
    address = server.address()
    expect(view.open(address).locator(".row.session")).to_have_count(1)
    second = view.open(address)
    expect(second.get_by_role("alert")).to_contain_text("used already")
    view.faults = [each for each in view.faults if "401" not in each]  # the browser reports it too


def test_a_new_address_pasted_over_the_old_one_lets_the_page_in(view: Watched, server: Serving) -> None:
    page = view.open(f"{server.url}#/?token=wrong")
    expect(page.get_by_role("alert")).to_contain_text("used already")
    page.goto(server.address())  # only what stands behind the # is new
    expect(page.locator(".row.session")).to_have_count(1)
    assert "token" not in page.url
    view.faults = [each for each in view.faults if "401" not in each]


def test_a_link_that_somebody_cut_still_leads_to_a_page(view: Watched, server: Serving) -> None:
    page = view.open(server.address())
    expect(page.locator(".row.session")).to_have_count(1)
    page.goto(f"{server.url}#/compare/%E0%A4%A")
    page.reload()
    expect(page.locator(".row.session")).to_have_count(1)


def test_a_call_opens_with_its_input_its_change_and_its_output(view: Watched, server: Serving) -> None:
    page = view.open(server.address())
    page.get_by_role("link", name="When did the ship").click()
    page.get_by_role("button", name="edit harbour.md").click()
    body = page.locator(".call-body")
    expect(body).to_contain_text("old_string")
    expect(body.locator(".diff .gone")).to_contain_text("High water: 04:05")
    expect(body.locator(".diff .come").last).to_contain_text("16:31")
    page.get_by_role("button", name="read_file missing.txt").click()
    expect(page.locator(".row.call .bad").first).to_contain_text("missing.txt")


def test_a_request_is_shown_item_by_item_to_the_byte_and_as_a_difference(view: Watched, server: Serving, shown: Shown) -> None:
    page = view.open(server.address())
    page.get_by_role("link", name="When did the ship").click()
    page.get_by_role("link", name="What the model was told").nth(2).click()
    items = page.locator("table.items tbody tr")
    expect(items.filter(has_text="system prompt")).to_have_count(1)
    expect(items.filter(has_text="4 March: reached Muscat")).to_contain_text("$")
    page.keyboard.press("2")
    exact = page.locator("pre.exact")
    expect(exact).to_be_visible()
    assert exact.evaluate("each => each.textContent").encode() == shown.sent[2]
    for protocol in ("gemini", "openai_chat", "openai_responses", "anthropic"):
        page.get_by_role("link", name=protocol, exact=True).click()
        expect(page.get_by_role("link", name=protocol, exact=True)).to_have_attribute("aria-current", "page")
        expect(exact).to_contain_text("When did the ship reach Muscat?")
    page.keyboard.press("4")
    expect(page.locator(".diff .come").first).to_be_visible()
    expect(page.locator(".diff")).to_contain_text("created harbour.md")


def test_files_are_shown_side_by_side_and_the_context_as_a_chart(view: Watched, server: Serving) -> None:
    page = view.open(server.address())
    page.get_by_role("link", name="When did the ship").click()
    page.get_by_role("link", name="Files", exact=True).click()
    sides = page.locator(".sides")
    expect(sides).to_have_count(2)
    expect(sides.last.locator(".gone")).to_have_text("High water: 04:05")
    expect(sides.last.locator(".come")).to_have_text("High water: 04:05 and 16:31")
    page.get_by_role("link", name="Context", exact=True).click()
    expect(page.locator(".chart canvas")).to_be_visible()
    expect(page.locator(".chart")).to_have_attribute("aria-label", re.compile("^6 requests"))
    expect(page.get_by_role("row", name=re.compile("never"))).to_contain_text("100%")
