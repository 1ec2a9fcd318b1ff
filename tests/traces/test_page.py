"""Every piece of code in docs/operate/traces.md runs as it stands, against a service on loopback; and its tables are true."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from dragoman.testing.mock.server import MockServer
from scenarios.workshop import play

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "operate" / "traces.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run_block(code: str, folder: Path) -> tuple[str, str]:
    async def go() -> tuple[str, str]:
        async with MockServer("text: At the quay.") as server:
            home = {
                name: str(folder)
                for name in ("HOME", "DRAGOMAN_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
            }
            env = os.environ | home | {"GEMINI_API_KEY": "key-for-tests", "GOOGLE_GEMINI_BASE_URL": server.url}
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            out, err = await process.communicate()
            assert process.returncode == 0, err.decode()
            return out.decode(), err.decode()

    return play(go)


def test_the_example_prints_spans(tmp_path: Path) -> None:
    out, err = run_block(BLOCKS[0], tmp_path)
    assert err == ""
    assert "At the quay." in out
    assert re.findall(r'^    "name": "(.*)"', out, re.MULTILINE) == ["chat gemini-3.8-flash", "invoke_agent pilot"]


def test_the_example_logs_a_run(tmp_path: Path) -> None:
    out, err = run_block(BLOCKS[1], tmp_path)
    assert out == ""
    assert [line.split(":")[:2] for line in err.splitlines()] == [["INFO", "dragoman.runs"]] * 2
    assert "harbour" not in err
