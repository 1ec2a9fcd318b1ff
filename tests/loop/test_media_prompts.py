"""Images, PDFs, sounds and videos in a prompt: bytes, files and addresses reach the service, or are refused before anything is recorded."""

from __future__ import annotations

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.app.prompt_files import attach
from dragoman.testing import ScriptedProvider
from dragoman.testing.loopback import Loopback
from dragoman.values.media import MAX_MEDIA_BYTES

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
PDF = b"%PDF-1.4\n%%EOF\n"
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(24)
MP4 = b"\x00\x00\x00\x18ftypmp42" + bytes(12)


def coded(data: bytes) -> str:
    return b64encode(data).decode()


def data_url(mime: str, data: bytes) -> str:
    return f"data:{mime};base64,{coded(data)}"


SENT: dict[str, tuple[str, list[Any], Callable[[Any], Any], list[Any]]] = {
    "gemini": (
        "gemini/gemini-3.8-flash",
        [PNG, PDF, dm.Media(WAV), dm.Media(MP4), dm.FileRef.of("https://e.org/a.mp4")],
        lambda body: body["contents"][-1]["parts"][1:],
        [
            {"inlineData": {"mimeType": "image/png", "data": coded(PNG)}},
            {"inlineData": {"mimeType": "application/pdf", "data": coded(PDF)}},
            {"inlineData": {"mimeType": "audio/wav", "data": coded(WAV)}},
            {"inlineData": {"mimeType": "video/mp4", "data": coded(MP4)}},
            {"fileData": {"mimeType": "video/mp4", "fileUri": "https://e.org/a.mp4"}},
        ],
    ),
    "anthropic": (
        "anthropic/claude-opus-5",
        [PNG, PDF, dm.FileRef.of("https://e.org/a.pdf")],
        lambda body: [block["source"] for block in body["messages"][-1]["content"][1:]],
        [
            {"type": "base64", "media_type": "image/png", "data": coded(PNG)},
            {"type": "base64", "media_type": "application/pdf", "data": coded(PDF)},
            {"type": "url", "url": "https://e.org/a.pdf"},
        ],
    ),
    "responses": (
        "responses/gpt-6.1-sol",
        [PNG, PDF, dm.FileRef.of("https://e.org/a.pdf"), dm.FileRef("application/pdf", "file-abc")],
        lambda body: body["input"][-1]["content"][1:],
        [
            {"type": "input_image", "detail": "auto", "image_url": data_url("image/png", PNG)},
            {"type": "input_file", "filename": "document.pdf", "file_data": data_url("application/pdf", PDF)},
            {"type": "input_file", "file_url": "https://e.org/a.pdf"},
            {"type": "input_file", "file_id": "file-abc"},
        ],
    ),
    "chat": (
        "openai/gpt-4.1",
        [PNG, PDF, dm.FileRef.of("https://e.org/a.png"), dm.FileRef("application/pdf", "file-abc")],
        lambda body: body["messages"][-1]["content"][1:],
        [
            {"type": "image_url", "image_url": {"url": data_url("image/png", PNG)}},
            {"type": "file", "file": {"filename": "document.pdf", "file_data": data_url("application/pdf", PDF)}},
            {"type": "image_url", "image_url": {"url": "https://e.org/a.png"}},
            {"type": "file", "file": {"file_id": "file-abc"}},
        ],
    ),
}


@pytest.mark.parametrize("protocol", SENT)
def test_what_a_prompt_holds_reaches_the_service(protocol: str) -> None:
    model, media, read, expected = SENT[protocol]
    with Loopback("text: seen") as loopback, dm.Agent(loopback.connect(model)) as agent:
        assert agent.run_sync(["look at this", *media]).text == "seen"
        assert read(loopback.requests[-1].body) == expected


def test_a_file_is_read_by_what_it_holds_and_the_session_keeps_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "shot.jpg").write_bytes(PNG)
    with Loopback("text: seen\n---\ntext: still") as loopback:
        with dm.Agent(loopback.connect("anthropic/claude-opus-5"), session=tmp_path / "sessions") as agent:
            agent.run_sync(["what is it?", tmp_path / "shot.jpg"])
        (tmp_path / "shot.jpg").unlink()
        options = dm.SessionOptions(tmp_path / "sessions", resume="latest")
        with dm.Agent(loopback.connect("anthropic/claude-opus-5"), session=options) as agent:
            agent.run_sync("and now?")
        [source] = [each["source"] for each in loopback.requests[-1].body["messages"][0]["content"] if each["type"] == "image"]
    assert source == {"type": "base64", "media_type": "image/png", "data": coded(PNG)}


@pytest.mark.parametrize(
    ("model", "part", "words"),
    [
        ("deepseek/deepseek-v4-pro", PNG, ["deepseek/deepseek-v4-pro", "image/png", "text alone"]),
        ("anthropic/claude-opus-5", dm.Media(WAV), ["anthropic/claude-opus-5", "audio/wav", "images, PDFs"]),
        ("anthropic/claude-opus-5", dm.FileRef.of("gs://b/a.png"), ["cannot fetch image/png from gs://b/a.png"]),
        ("openai/gpt-4.1", dm.FileRef.of("https://e.org/a.pdf"), ["cannot fetch application/pdf"]),
        ("gemini/gemini-3.8-flash", b"GIF89a" + bytes(9), ["image/gif", "images (PNG, JPEG, WEBP, HEIC, HEIF), PDFs, sounds"]),
        ("gemini/gemini-3.8-flash", dm.Media(b"PK", "application/zip"), ["application/zip", "images, PDFs, sounds, videos"]),
    ],
)
def test_what_a_model_cannot_be_sent_is_refused_before_anything_is_recorded(model: str, part: Any, words: list[str]) -> None:
    with Loopback("text: seen") as loopback, dm.Agent(loopback.connect(model)) as agent:
        with pytest.raises(dm.InputError) as caught:
            agent.run_sync(["look", part])
        assert all(word in str(caught.value) for word in words), str(caught.value)
        assert not loopback.requests
        assert not agent.history.entries or not agent.history.transcript()


def test_text_goes_to_any_model_as_text() -> None:
    with Loopback("text: read") as loopback, dm.Agent(loopback.connect("deepseek/deepseek-v4-pro")) as agent:
        agent.run_sync(["sum this up", dm.Media(b"a,b\n1,2\n", "text/csv")])
        assert "1,2" in str(loopback.requests[-1].body["messages"])


def bad_files(folder: Path) -> dict[str, str]:
    (folder / "empty.png").touch()
    (folder / "notes.txt").write_text("x")
    os.mkfifo(folder / "pipe.png")
    with (folder / "big.png").open("wb") as file:
        file.write(PNG)
        file.truncate(MAX_MEDIA_BYTES + 1)
    return {
        "gone.png": "No such file",
        "empty.png": "is empty",
        "notes.txt": "no image, PDF, sound or video",
        "pipe.png": "not a regular file",
        "big.png": "20,000,001 bytes",
        ".": "is not a regular file: name the image",
    }


def test_a_file_that_cannot_be_sent_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with dm.Agent(ScriptedProvider(["seen"])) as agent:
        for name, words in bad_files(tmp_path).items():
            with pytest.raises(dm.InputError, match=words) as caught:
                agent.run(["look", tmp_path / name])
            assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [b"plain words", dm.Media(b"plain words"), dm.Media("text"), b"", dm.Media(b"", "image/png"), []],  # type: ignore[arg-type]
)
def test_bytes_of_no_kind_are_refused(given: Any) -> None:
    with dm.Agent(ScriptedProvider(["seen"])) as agent, pytest.raises(dm.InputError):
        agent.run(["look", given] if given != [] else given)


def test_an_address_without_a_telling_end_wants_a_type() -> None:
    with pytest.raises(dm.InputError, match="its type"):
        dm.FileRef.of("https://e.org/picture")
    assert dm.FileRef.of("https://e.org/picture", "image/png") == dm.FileRef("image/png", "https://e.org/picture")
    assert dm.FileRef.of("file-abc", "application/pdf") == dm.FileRef("application/pdf", "file-abc")


@pytest.mark.parametrize("given", ["", "shot.png", "/tmp/shot.png", "file:///tmp/shot.png", Path("shot.png"), 3])
def test_what_is_no_address_is_not_sent_as_one(given: Any) -> None:
    with pytest.raises(dm.InputError, match=r"no address .* pathlib.Path\('shot.png'\)"):
        dm.FileRef.of(given)


def test_a_tool_that_returns_an_empty_image_is_told_so() -> None:
    def shoot() -> dm.Media:
        return dm.Media(b"", "image/png")

    provider = ScriptedProvider("call: shoot {}\n---\ntext: Nothing there.")
    with dm.Agent(provider, tools=[shoot]) as agent:
        agent.run_sync("take one")
    (result,) = provider.requests[1].messages[-1].results
    assert result.is_error
    assert "there are no bytes to send" in result.text


def test_a_prompt_names_media_by_their_paths(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b b.JPG").write_bytes(b"\xff\xd8\xff" + bytes(9))
    (tmp_path / "talk.mp3").write_bytes(b"ID3" + bytes(9))
    (tmp_path / "no.gif").write_bytes(b"text")
    (tmp_path / "notes.txt").write_text("x")
    os.symlink(tmp_path / "a.png", tmp_path / "link.png")
    with Loopback() as loopback, dm.coding_agent(loopback.connect("gemini/gemini-3.8-flash"), workspace=tmp_path) as agent:
        prompt = (
            'compare @a.png with @"b b.JPG", hear @talk.mp3! see @https://e.org/v.mp4. @link.png '
            "not @no.gif @notes.txt @gone.png @someone or me@a.png"
        )
        found = asyncio.run(attach(agent, prompt))
    media = [part.mime for part in found.parts if isinstance(part, dm.Blob | dm.FileRef)]
    assert media == ["image/png", "image/jpeg", "audio/mpeg", "video/mp4", "image/png"]
    assert [problem.split()[0] for problem in found.problems] == ["no.gif", "gone.png"]
