"""`dragoman -p "what is on @shot.png"`: the real program sends what the prompt names, or refuses before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from program import Place, Service
from terminals import terminal

Serve = Callable[..., Service]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def kinds(request: dict[str, list[dict[str, list[dict[str, str]]]]]) -> list[str]:
    return [block["type"] for block in request["messages"][-1]["content"]]


def test_images_and_documents_that_the_prompt_names_are_sent(place: Place, serve: Serve) -> None:
    asked = serve("text: A ship.")
    (place.work / "shot.png").write_bytes(PNG)
    (place.work / "my paper.pdf").write_bytes(b"%PDF-1.4\n%%EOF\n")
    done = place.ask('what is on @shot.png? compare @"my paper.pdf" and @https://example.org/b.png, me@c.png @notes.txt')
    assert (done.code, done.out) == (0, "A ship.\n")
    assert "@notes.txt is no file here, so it was sent as it stands" in done.err
    [*_, text, first, image, second, document, third, address] = asked.requests[0]["messages"][-1]["content"]
    assert text["text"].startswith("what is on @shot.png?")
    names = ["--- shot.png ---", "--- my paper.pdf ---", "--- https://example.org/b.png ---"]
    assert [part["text"].strip() for part in (first, second, third)] == names
    assert [image["type"], document["type"], address["source"]] == [
        "image",
        "document",
        {"type": "url", "url": "https://example.org/b.png"},
    ]


def test_what_comes_through_standard_input_names_nothing(place: Place, serve: Serve) -> None:
    asked = serve("text: ok")
    (place.work / "shot.png").write_bytes(PNG)
    assert place.ask("sum this up", stdin="see @shot.png and @gone.png\n").code == 0
    assert set(kinds(asked.requests[0])) == {"text"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gone.png", ["gone.png", "No such file"]),
        ("pipe.png", ["pipe.png", "not a regular file"]),
        ("text.png", ["text.png", "no image"]),
        ("song.mp3", ["song.mp3", "anthropic/claude-opus-5", "audio/mpeg", "images, PDFs"]),
    ],
)
def test_what_cannot_be_sent_ends_the_run_before_it_begins(place: Place, serve: Serve, name: str, words: list[str]) -> None:
    asked = serve("text: ok")
    os.mkfifo(place.work / "pipe.png")
    (place.work / "text.png").write_text("text")
    (place.work / "song.mp3").write_bytes(b"ID3" + bytes(20))
    done = place.ask(f"what is on @{name}?")
    done.complaint(42, *words)
    assert not asked.requests


def test_the_plain_conversation_sends_them_too_and_says_what_it_cannot_send(place: Place, serve: Serve) -> None:
    asked = serve("text: A ship.")
    (place.work / "shot.png").write_bytes(PNG)
    with terminal(place) as shown:
        shown.prompt()
        shown.ask("what is on @shot.png, and @gone.png?")
        assert "gone.png cannot be read" in shown.prompt()
    assert kinds(asked.requests[0])[-1] == "image"
