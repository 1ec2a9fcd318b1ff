"""What we keep for ourselves lies where no command can write, whatever TMPDIR and the workspace are."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents import make_agent
from dragoman.base.mounts import lies_in_any
from dragoman.conversation.editor import EditorFailed, edit
from dragoman.testing.scripted import ScriptedProvider
from dragoman.tools.streams import as_file
from dragoman.tui.clipboard import NoClipboard, PastedImages, read_image
from dragoman.values.calls import Allow, Intent
from dragoman.values.messages import ToolCall
from program import Place, Service, calls, script
from reachable import folder_outside_temporary
from swaps import contents_of

SWAP = "for d in {data}/tmp/*/results-* {data}/tmp/results-*; do mv $d $d.old && ln -s {outside} $d; done; seq 1 30000"


@pytest.fixture
def home() -> Iterator[Path]:
    with folder_outside_temporary() as folder:
        yield folder


def test_long_results_of_a_session_that_is_not_saved_cannot_be_led_elsewhere(
    place: Place, serve: Callable[..., Service], home: Path
) -> None:
    place.home = home
    data, outside = home / "dragoman" / "data", home / ".bashrc.d"
    data.mkdir(parents=True)
    outside.mkdir()
    swap = SWAP.format(data=data, outside=outside)
    serve(script([calls(("run_shell", {"command": "seq 1 30000"}))], [calls(("run_shell", {"command": swap}))], "text: Done."))
    (home / "dragoman" / "config.toml").write_text("[sessions]\nkeep = false\n")
    done = place.run("-m", "anthropic/claude-opus-5", "--approval", "auto", "-p", "go")
    assert (done.code, done.out) == (0, "Done.\n"), done
    assert contents_of(outside) == {}


async def allow(call: ToolCall, view: Intent) -> Allow:
    return Allow()


@pytest.mark.parametrize("temporary", ["tmp", "link", "."])
def test_long_results_do_not_lie_in_the_workspace_where_tmpdir_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, temporary: str
) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    (work / "tmp").mkdir(parents=True)
    elsewhere.mkdir()
    (elsewhere / "back").symlink_to(work / "tmp")
    (work / "link").symlink_to(elsewhere / "back")
    monkeypatch.setenv("TMPDIR", str(work / temporary))
    agent = make_agent(ScriptedProvider('call: run_shell {"command": "seq 1 30000"}\n---\ntext: Done.'), workspace=work, ask=allow)

    async def run() -> str:
        await agent.run("go")
        output = agent.history.view.messages[-2].results[0].content[0].text  # type: ignore[union-attr]
        await agent.aclose()
        return output

    output = asyncio.run(run())
    kept = output.partition("The whole output is in ")[2].partition(": read it")[0]
    assert kept
    assert not lies_in_any(kept, [str(work)])


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with TMPDIR in it, and an active virtual environment."""
    work = tmp_path / "work"
    for folder in (work / "tmp", work / ".venv" / "bin", tmp_path / "bin"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(work / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("PATH", f"{work}/.venv/bin:{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.chdir(work)
    return work


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_what_is_edited_lies_where_no_command_writes_and_the_editor_too(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(work / ".venv" / "bin" / "ed1", "exit 1")
    program(work.parent / "bin" / "ed1", f'echo "$1" > {work.parent}/path; echo more >> "$1"')
    monkeypatch.setenv("VISUAL", "ed1")
    assert asyncio.run(edit("text\n", "command.sh", 1, [str(work)])) == "text\nmore\n"
    path = (work.parent / "path").read_text().strip()
    assert path.endswith("/command.sh")
    assert not lies_in_any(path, [str(work)])
    assert not os.path.lexists(os.path.dirname(path))
    (work.parent / "bin" / "ed1").unlink()
    with pytest.raises(EditorFailed):
        asyncio.run(edit("text", "command.sh", 1, [str(work)]))


def test_pasted_images_lie_where_no_command_writes(work: Path) -> None:
    pasted = PastedImages([str(work)])
    path = pasted.keep(b"image")
    assert not lies_in_any(path, [str(work)])
    pasted.close()
    assert not os.path.lexists(os.path.dirname(path))


def test_no_program_of_the_workspace_is_asked_for_the_clipboard(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(work / ".venv" / "bin" / "xclip", f"touch {work.parent}/ran")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.setenv("PATH", str(work / ".venv" / "bin"))
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(NoClipboard):
        asyncio.run(read_image([str(work)]))
    assert not (work.parent / "ran").exists()


def test_what_a_hook_reads_has_no_name_in_a_folder(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryFile", None)
    with as_file(b"input") as file:
        done = subprocess.run(["cat"], stdin=file, capture_output=True, check=True)
    assert done.stdout == b"input"
