"""Images in a prompt: dropped or pasted paths become `@` words, and those are sent with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dragoman.app.prompt_media import read_media
from dragoman.tools.workspace import Workspace
from dragoman.tui import clipboard
from dragoman.tui.clipboard import NoClipboard, PastedImages, read_image
from dragoman.tui.composer import MEDIA_ENDINGS
from dragoman.tui.images import as_word
from dragoman.values.media_types import ENDINGS

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("{path}", '@"my pic.png" '),
        ("'{path}'", '@"my pic.png" '),
        ("{path}\n", '@"my pic.png" '),
        ("file://{url}", '@"my pic.png" '),
        ("see {path}", ""),
        ("{path}.txt", ""),
        ("/nowhere/else.png", ""),
        ("pic.png", ""),
    ],
)
def test_the_path_of_an_image_becomes_a_word(tmp_path: Path, form: str, expected: str) -> None:
    path = tmp_path / "my pic.png"
    path.write_bytes(PNG)
    text = form.format(path=str(path).replace(" ", "\\ ") if form == "{path}\n" else path, url=str(path).replace(" ", "%20"))
    assert as_word(text, str(tmp_path)) == expected


def test_the_endings_of_media_are_those_that_can_be_read() -> None:
    assert set(MEDIA_ENDINGS) == set(ENDINGS)


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [("printf '\\211PNG\\r\\n'; printf x", b"\x89PNG\r\nx"), ("printf '«data PNGf8950»'", b"\x89\x50"), ("exit 1", b""), ("", None)],
    ids=["an image", "as macOS says it", "none there", "no program"],
)
def test_the_image_in_the_clipboard_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, wanted: bytes | None
) -> None:
    if printed:
        (tmp_path / "xclip").write_text(f"#!/bin/sh\n{printed}\n", encoding="utf-8")
        (tmp_path / "xclip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setattr("sys.platform", "linux")
    if wanted is None:
        with pytest.raises(NoClipboard):
            asyncio.run(read_image([]))
    else:
        assert asyncio.run(read_image([])) == wanted


def test_pasted_images_are_for_the_user_alone_and_go_with_the_conversation(tmp_path: Path) -> None:
    pasted = PastedImages([])
    first, second = Path(pasted.keep(PNG)), Path(pasted.keep(PNG + b"x"))
    assert (first.read_bytes(), second.read_bytes()) == (PNG, PNG + b"x")
    assert first.stat().st_mode & 0o077 == first.parent.stat().st_mode & 0o077 == 0
    elsewhere = Workspace(tmp_path)
    assert [read_media(str(path), elsewhere).mime for path in (first, second)] == ["image/png"] * 2
    pasted.close()
    assert not first.parent.exists()


def test_a_text_is_handed_to_every_program_that_keeps_a_clipboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tmux", "xclip"):
        (tmp_path / name).write_text(f'#!/bin/sh\n/bin/cat > "{tmp_path}/{name}.got"\necho "$@" > "{tmp_path}/{name}.args"\n')
        (tmp_path / name).chmod(0o755)
    for name, value in (("PATH", str(tmp_path)), ("TMUX", "/tmp/x,1,0"), ("DISPLAY", ":9"), ("WAYLAND_DISPLAY", "w")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", "linux")

    async def copy() -> None:
        clipboard.copy_text("文本\n", [])
        await asyncio.wait(clipboard._copying)

    asyncio.run(copy())
    assert [(tmp_path / f"{name}.got").read_text() for name in ("tmux", "xclip")] == ["文本\n"] * 2, "wl-copy is not installed"
    assert (tmp_path / "tmux.args").read_text() == "load-buffer -w -\n"
