"""A conversation held in pages, against the loopback service: what the terminal does, by one POST for each thing and one stream."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from program import Place, service
from viewer.browsing import Serving, Watched, serving, session_files, wait_until, watched
from viewer.test_live import show

MODEL = ("-m", "anthropic/claude-opus-5")
WRITE = 'call: write_file {"file_path": "NAME", "content": "hello\\n"}'
CONFIG = """
model = "anthropic/claude-opus-5"
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    (found.home / "dragoman").mkdir()
    (found.home / "dragoman" / "config.toml").write_text(CONFIG)
    yield found
    found.close()


@contextmanager
def talking(place: Place, browser: Browser, script: str) -> Iterator[tuple[Serving, Watched, Page]]:
    with service(script) as place.service, serving(place, "--talk") as server, watched(browser, server) as view:
        page = view.open(server.address("/talk"))
        page.get_by_role("button", name=re.compile("New conversation")).click()
        expect(field(page)).to_be_enabled()
        yield server, view, page


def field(page: Page) -> Locator:
    return page.get_by_label("Write a prompt or a /command")


def send(page: Page, text: str) -> None:
    field(page).fill(text)
    field(page).press("Enter")
    expect(field(page)).to_have_value("")


def question(page: Page) -> Locator:
    return page.get_by_role("group", name="Question:")


def told(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False)


def test_a_task_from_prompt_to_answer_with_every_kind_of_answer_to_its_questions(place: Place, browser: Browser) -> None:
    calls = [WRITE.replace("NAME", name) for name in ("a.txt", "b.txt", "c.txt", "d.txt")]
    edit = 'call: edit {"file_path": "a.txt", "old_string": "hello", "new_string": "good day"}'
    script = "\n---\n".join([*calls[:3], edit, calls[3], 'text piece=3: "All **done**.\\n\\n- one\\n- two"'])
    with talking(place, browser, script) as (_, _, page):
        send(page, "Write the files.")
        expect(question(page)).to_contain_text("a.txt")
        expect(question(page).locator(".come")).to_contain_text("hello")
        assert not (place.work / "a.txt").exists()
        question(page).get_by_role("button", name="yes", exact=True).click()
        expect(question(page)).to_contain_text("b.txt")
        assert (place.work / "a.txt").read_text() == "hello\n"

        question(page).get_by_role("button", name="no, because").click()
        page.get_by_label("Why not").fill("Not that one, please.")
        question(page).get_by_role("button", name="Send").click()
        expect(question(page)).to_contain_text("c.txt")
        assert not (place.work / "b.txt").exists()
        assert place.service is not None
        assert "Not that one, please." in told(place.service.requests[2])

        question(page).get_by_role("button", name="change it first").click()
        page.get_by_label("What it becomes").fill('{"file_path": "c.txt", "content": "mine\\n"}')
        question(page).get_by_role("button", name="Send").click()
        expect(question(page).locator(".come")).to_contain_text("mine")
        question(page).get_by_role("button", name="yes", exact=True).click()
        expect(question(page).locator(".gone")).to_contain_text("hello")
        assert (place.work / "c.txt").read_text() == "mine\n"

        question(page).get_by_role("button", name=re.compile("this session")).click()
        expect(page.locator(".markdown strong")).to_have_text("done")
        expect(page.locator(".markdown li")).to_have_text(["one", "two"])
        assert (place.work / "d.txt").exists()  # allowed for the session
        expect(question(page)).to_have_count(0)
    shown = place.run("sessions", "show", "latest")
    assert "Write the files." in shown.out
    assert "All **done**." in shown.out or "done" in shown.out


def test_what_is_pressed_twice_is_done_once(place: Place, browser: Browser) -> None:
    with talking(place, browser, f"{WRITE.replace('NAME', 'a.txt')}\n---\ntext: Done.") as (_, _, page):
        field(page).fill("Begin.")
        for _ in range(3):
            field(page).press("Enter")
        question(page).get_by_role("button", name="yes", exact=True).dblclick()
        expect(page.locator(".markdown")).to_have_text("Done.")
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        expect(page.locator(".row.prompt")).to_have_count(1)
        expect(page.get_by_role("alert")).to_have_count(0)


def test_a_command_that_fails_is_shown_as_failed_with_its_code(place: Place, browser: Browser) -> None:
    with talking(place, browser, 'call: run_shell {"command": "echo so far; exit 3", "writes": true}\n---\ntext: It failed.') as (
        _,
        _,
        page,
    ):
        send(page, "Begin.")
        expect(page.locator(".markdown")).to_have_text("It failed.")
        call = page.locator(".row.call")
        expect(call.locator(".mark.failed")).to_have_text("✗")
        expect(call).to_contain_text("failed exit code 3")
        page.get_by_role("link", name="Timeline").click()  # as the log has it
        expect(page.locator(".row.call")).to_contain_text("failed exit code 3")


def test_the_end_stays_in_sight_until_somebody_scrolls_up(place: Place, browser: Browser) -> None:
    paragraphs = "\\n\\n".join(f"Paragraph {number}, long enough to take more than one line of a telephone." for number in range(30))
    script = f'text piece=60: "{paragraphs}"\n---\ntext piece=60: "{paragraphs}"\n---\ntext piece=60: "{paragraphs}\\n\\nThe end."'
    with talking(place, browser, script) as (server, view, page):
        page.set_viewport_size({"width": 375, "height": 700})
        send(page, "Begin.")
        expect(page.get_by_text("Paragraph 29")).to_be_in_viewport()
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        page.mouse.move(200, 300)
        page.mouse.wheel(0, -1500)
        expect(page.get_by_text("Paragraph 29")).not_to_be_in_viewport()
        send(page, "More.")  # leads back to the end
        assert place.service is not None
        place.service.expect(2)
        expect(page.get_by_text("More.")).to_have_count(0)  # far above the window, with what answers it below
        expect(page.get_by_text("Paragraph 29").last).to_be_in_viewport()
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        page.mouse.wheel(0, -1500)
        expect(page.get_by_text("Paragraph 29").last).not_to_be_in_viewport()
        show(page, "hidden")
        other = view.open(server.address(page.url.partition("#")[2]))
        send(other, "Last.")
        expect(other.get_by_text("The end.")).to_be_in_viewport()
        show(page, "visible")  # the prompt comes with all that answers it
        expect(page.get_by_text("The end.")).to_be_in_viewport()


def test_what_is_sent_during_a_run_waits_steers_is_taken_back_or_stops_it(place: Place, browser: Browser) -> None:
    script = "text: I begin.\nstall\n---\ntext: Second.\n---\ntext: Third."
    with talking(place, browser, script) as (_, _, page):
        send(page, "Begin.")
        expect(page.locator(".markdown").first).to_have_text("I begin.")
        send(page, "Then this.")
        send(page, "And never this.")
        expect(page.locator(".composer li")).to_have_count(2)
        page.get_by_role("button", name="Take back").last.click()
        expect(page.locator(".composer li")).to_have_count(1)
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".row.prompt")).to_have_count(2)
        expect(page.locator(".markdown").last).to_have_text("Second.")
        expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_a_prompt_steers_the_run_that_is_under_way(place: Place, browser: Browser) -> None:
    with talking(place, browser, f"{WRITE.replace('NAME', 'a.txt')}\n---\ntext: As you say.") as (_, _, page):
        send(page, "Begin.")
        expect(question(page)).to_be_visible()
        field(page).fill("Use capitals.")
        page.get_by_role("button", name="Steer").click()
        expect(field(page)).to_have_value("")
        question(page).get_by_role("button", name="yes", exact=True).click()
        expect(page.locator(".markdown").last).to_have_text("As you say.")
        assert place.service is not None
        assert "Use capitals." in told(place.service.requests[1])
        assert "Use capitals." not in told(place.service.requests[0])


def test_two_pages_see_the_same_and_either_answers(place: Place, browser: Browser) -> None:
    with talking(place, browser, f"{WRITE.replace('NAME', 'a.txt')}\n---\ntext: Done.\n---\ntext: Other.") as (server, view, page):
        send(page, "Begin.")
        expect(question(page)).to_be_visible()
        other = view.open(server.address(page.url.partition("#")[2]))
        expect(question(other)).to_contain_text("a.txt")
        question(other).get_by_role("button", name="yes", exact=True).click()
        expect(question(page)).to_have_count(0)
        expect(page.locator(".markdown")).to_have_text("Done.")
        expect(other.locator(".markdown")).to_have_text("Done.")

        page.get_by_role("combobox", name="Model").select_option("anthropic/claude-sonnet-5-5")
        expect(other.get_by_role("combobox", name="Model")).to_have_value("anthropic/claude-sonnet-5-5")
        page.close()
        send(other, "Once more.")
        expect(other.locator(".markdown").last).to_have_text("Other.")
        assert place.service is not None
        assert place.service.requests[-1]["model"] == "claude-sonnet-5-5"
        address = other.url
        other.close()
        again = view.open(server.address(address.partition("#")[2]))
        expect(again.locator(".row.prompt")).to_have_count(2)
        expect(again.locator(".markdown").last).to_have_text("Other.")


def test_a_conversation_that_is_closed_here_goes_on_in_the_terminal_and_back(place: Place, browser: Browser) -> None:
    with talking(place, browser, "text: First.\n---\ntext: Second.\n---\ntext: Third.") as (server, view, page):
        send(page, "One.")
        expect(page.locator(".markdown")).to_have_text("First.")
        other = view.open(server.address("/talk/latest"))
        expect(other.locator(".markdown")).to_have_text("First.")
        assert "in use" in place.run("--resume", "-p", "Two.").err
        page.get_by_role("button", name="Close, for the terminal").click()
        expect(page.get_by_role("button", name=re.compile("New conversation"))).to_be_visible()
        expect(other.get_by_text("no longer followed")).to_be_visible()
        assert place.run("--resume", "-p", "Two.").out == "Second.\n"
        page.go_back()
        expect(page.locator(".markdown").last).to_have_text("Second.")
        send(page, "Three.")
        expect(page.locator(".markdown").last).to_have_text("Third.")
        view.faults = [each for each in view.faults if "404" not in each]  # what the other page asked for is gone


def test_a_command_that_looks_like_a_difference_is_asked_about_as_a_command(place: Place, browser: Browser) -> None:
    call = json.dumps({"command": "rm \\\n-r \\\n+x", "writes": True})
    with talking(place, browser, f"call: run_shell {call}\n---\ntext: As you say.") as (_, _, page):
        send(page, "Begin.")
        expect(question(page).locator(".code")).to_have_text("rm \\\n-r \\\n+x")
        expect(question(page).locator(".diff")).to_have_count(0)
        question(page).get_by_role("button", name="no", exact=True).click()
        expect(page.locator(".markdown")).to_have_text("As you say.")


def test_a_killed_program_is_started_again_and_the_conversation_goes_on(place: Place, browser: Browser) -> None:
    with service("text: First.\n---\ntext: I was ab\nstall\n---\ntext: Later.") as place.service:
        with serving(place, "--talk") as server, watched(browser, server) as view:
            page = view.open(server.address("/talk"))
            page.get_by_role("button", name=re.compile("New conversation")).click()
            send(page, "One.")
            expect(page.locator(".markdown")).to_have_text("First.")
            send(page, "Two.")
            expect(page.locator(".markdown").last).to_have_text("I was ab")
            place_in_page = page.url.partition("#")[2]
            server.process.kill()
            server.process.wait(60)
            field(page).fill("Are you there?")
            field(page).press("Enter")
            expect(page.get_by_role("alert")).to_contain_text("the program has ended")
            expect(field(page)).to_have_value("Are you there?")
            page.close()
            view.faults = []  # it was cut off
        with serving(place, "--talk") as server, watched(browser, server) as view:
            page = view.open(server.address(place_in_page))
            expect(page.locator(".row.prompt")).to_have_count(2)
            send(page, "Three.")
            expect(page.locator(".markdown").last).to_have_text("Later.")
        assert "Two." in told(place.service.requests[-1])
        assert len(session_files(place)) == 1


def test_a_folder_stays_untrusted_until_somebody_says_so(place: Place, browser: Browser) -> None:
    (place.work / "AGENTS.md").write_text("Always answer in French.")
    with service("text: Hello.") as place.service, serving(place, "--talk") as server, watched(browser, server) as view:
        page = view.open(server.address("/talk"))
        page.get_by_role("button", name=re.compile("New conversation")).click()
        expect(question(page)).to_contain_text("AGENTS.md")
        expect(field(page)).to_be_disabled()
        question(page).get_by_role("button", name=re.compile("^no", re.I)).first.click()
        send(page, "Hi.")
        expect(page.locator(".markdown")).to_have_text("Hello.")
        assert "Always answer in French." not in told(place.service.requests[0])


def test_without_talk_there_is_none(place: Place, browser: Browser) -> None:
    with serving(place) as server, watched(browser, server) as view:
        page = view.open(server.address("/talk"))
        expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
        key = page.evaluate("sessionStorage.getItem('dragoman-key')")
        status = page.evaluate(
            """key => fetch('api/talk/open', {method: 'POST', body: '{}', headers: {'x-dragoman-key': key,
            'content-type': 'application/json'}}).then(answer => answer.status)""",
            key,
        )
        assert status == 404
        view.faults = [each for each in view.faults if "404" not in each]


def test_nothing_is_written_while_a_question_is_open(place: Place, browser: Browser) -> None:
    with talking(place, browser, f"{WRITE.replace('NAME', 'a.txt')}\n---\ntext: Never.") as (server, view, page):
        send(page, "Begin.")
        expect(question(page)).to_be_visible()
        server.process.terminate()
        wait_until(lambda: server.process.poll() is not None, "it does not end")
        assert not (place.work / "a.txt").exists()
        page.close()
        view.faults = []  # the server has gone
