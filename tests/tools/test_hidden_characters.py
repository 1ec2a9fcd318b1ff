"""What tools show of files and commands: hidden characters stay in it, and a line says which there are."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.options import ApprovalOptions
from dragoman.record import ToolFinished
from dragoman.testing.scripted import ScriptedProvider
from program import calls, script

HIDDEN = "ad\u200bmin = 1\n" + "".join(chr(0xE0000 + ord(char)) for char in "evil") + "\nrtl\u202e\n"


def results(folder: Path, *made: tuple[str, dict[str, Any]]) -> list[str]:
    provider = ScriptedProvider(script(*(calls(each) for each in made), "text: Done."))

    async def main() -> list[str]:
        approval = ApprovalOptions("auto-edit", ask=lambda call, intent: dm.Allow())
        async with dm.coding_agent(provider, workspace=folder, approval=approval) as agent:
            await agent.run("go")
            finished = [entry.result for entry in agent.history.entries if isinstance(entry, ToolFinished)]
            return ["".join(part.text for part in each.content if isinstance(part, dm.Text)) for each in finished]

    return asyncio.run(main())


@pytest.mark.skipif(sys.platform == "win32", reason="commands are for a shell of Unix")
def test_each_tool_that_shows_content_says_what_is_hidden_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(HIDDEN)
    (tmp_path / "b.py").write_text("👩‍🚀 می‌خواهم\n")
    read, part, many, found, printed, ordinary = results(
        tmp_path,
        ("read_file", {"file_path": "a.py"}),
        ("read_file", {"file_path": "a.py", "offset": 3}),
        ("read_many_files", {"paths": ["*.py"]}),
        ("grep", {"pattern": "min|rtl"}),
        ("run_shell", {"command": "cat a.py", "description": "x"}),
        ("read_file", {"file_path": "b.py"}),
    )
    assert read.startswith(HIDDEN), "the content stays as it is"
    for told in (read, many):
        assert "1 zero-width spaces (line 1), 4 tag characters (line 2), 1 bidirectional controls (line 3)" in told
    assert "1 bidirectional controls (line 3)" in part
    assert "zero-width" not in part.partition("holds")[2]
    assert "1 zero-width spaces (line 2), 1 bidirectional controls (line 3)" in found
    assert "[the output holds characters that are not seen" in printed
    assert "4 tag characters (line 2)" in printed
    assert ordinary == "👩‍🚀 می‌خواهم\n"


def test_an_edit_of_such_a_line_still_fits_exactly(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(HIDDEN)
    edit = {"file_path": "a.py", "old_string": "ad\u200bmin = 1", "new_string": "admin = 1"}
    results(tmp_path, ("read_file", {"file_path": "a.py"}), ("edit", edit))
    assert (tmp_path / "a.py").read_text() == HIDDEN.replace("\u200b", "")
