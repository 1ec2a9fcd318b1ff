"""`dragoman -p "what is on @shot.png"`: the real program sends what the prompt names, or refuses before anything is sent."""

from __future__ import annotations

import os
from base64 import b64decode
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


@pytest.mark.parametrize("data", [PNG, b"%PDF-1.4\n%%EOF\n"])
def test_standard_input_may_be_an_image_or_a_document(place: Place, serve: Serve, data: bytes) -> None:
    asked = serve("text: A ship.\n---\ntext: Two ships.")
    (place.work / "shot.png").write_bytes(PNG)
    assert place.ask("what is on it?", stdin=data).out == "A ship.\n"
    [*_, text, medium] = asked.requests[0]["messages"][-1]["content"]
    assert text["text"] == "what is on it?"
    assert b64decode(medium["source"]["data"]) == data
    assert place.ask("and on @shot.png?", stdin=data).code == 0
    [*_, first, second] = asked.requests[1]["messages"][-1]["content"]
    assert [b64decode(each["source"]["data"]) for each in (first, second)] == [PNG, data]


@pytest.mark.parametrize(
    ("prompt", "data", "words"),
    [
        ("what is said?", b"ID3" + bytes(20), ["standard input was not sent", "anthropic/claude-opus-5", "audio/mpeg", "images, PDFs"]),
        ("", PNG, ["standard input is not UTF-8 text"]),
        ("/nothing here", PNG, ["standard input is not UTF-8 text"]),
        ("what is this?", b"\x00\x01\x02", ["standard input is not UTF-8 text"]),
    ],
)
def test_standard_input_that_cannot_be_sent_ends_the_run(place: Place, serve: Serve, prompt: str, data: bytes, words: list[str]) -> None:
    asked = serve("text: ok")
    place.ask(prompt, stdin=data).complaint(42, *words)
    assert not asked.requests


def test_text_that_begins_like_a_sound_is_text(place: Place, serve: Serve) -> None:
    asked = serve("text: ok")
    assert place.ask("sum this up", stdin="ID3 tags are older than MP3 players.\n").code == 0
    assert set(kinds(asked.requests[0])) == {"text"}
    assert "ID3 tags" in str(asked.requests[0])


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
