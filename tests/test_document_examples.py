"""The Python examples of the founding documents in our words: each runs as it stands against the loopback service, and on the others with
one word changed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.testing import MockServer
from dragoman.testing.mock.wire import ModelRequest
from dragoman.testing.script import Script
from dragoman.testing.script_steps import ScriptedAnswer

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "documents"
LINES = {"chat.py": 78, "tool_chat.py": 120, "search_chat.py": 78}
"""How many the documents take for the same."""
MODELS = ("gemini", "openai", "anthropic")


def weather(request: ModelRequest) -> str:
    return "text: 今天北京天气晴朗。" if asks(request) == 1 else "text: 多云。"


def with_sources(request: ModelRequest) -> str:
    if asks(request) == 1:
        return 'text: 今天北京天气晴朗\ncite title="中国天气网": https://weather.com.cn/beijing'
    return "text: 多云。"


def with_tool(request: ModelRequest) -> str:
    if "Found files matching" in str(request.body):
        return "text: 我找到了 1 个文件。"
    return 'call: search_files {"path": ".", "file_pattern": "*.ts"}'


def asks(request: ModelRequest) -> int:
    """How often the person has spoken so far."""
    return str(request.body).count("今天北京的天气") + str(request.body).count("那明天呢") + str(request.body).count("需要带伞吗")


def run_with(example: str, model: str, script: Callable[[ModelRequest], str]) -> tuple[str, list[dict[str, Any]]]:
    """What the example prints with another word for the model, and the bodies that were sent."""
    code = (EXAMPLES / example).read_text(encoding="utf-8").replace('Chat("gemini"', f'Chat("{model}"')

    def answer(request: ModelRequest) -> ScriptedAnswer:
        return Script.parse(script(request)).answers[0]

    async def go() -> tuple[str, list[dict[str, Any]]]:
        async with MockServer(answer) as server:
            env = {name: value for name, value in os.environ.items() if not name.endswith(("_KEY", "_BASE_URL", "_PROXY"))} | {
                "GEMINI_API_KEY": "any",
                "OPENAI_API_KEY": "any",
                "ANTHROPIC_API_KEY": "any",
                "GOOGLE_GEMINI_BASE_URL": server.url,
                "OPENAI_BASE_URL": f"{server.url}/v1",
                "ANTHROPIC_BASE_URL": server.url,
                "PYTHONIOENCODING": "utf-8",
            }
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
            )
            out, err = await process.communicate()
            assert process.returncode == 0, err.decode()
            return out.decode(), [request.body for request in server.requests]

    return asyncio.run(go())


@pytest.mark.parametrize("model", MODELS)
def test_a_conversation_of_several_turns(model: str) -> None:
    printed, bodies = run_with("chat.py", model, weather)
    assert printed.splitlines() == ["AI: 今天北京天气晴朗。", "AI: 多云。", "AI: 多云。"]
    assert [len(body.get("contents") or body.get("messages") or body["input"]) for body in bodies] == [1, 3, 5]


@pytest.mark.parametrize("model", MODELS)
def test_a_tool_is_called_and_its_result_goes_back(model: str) -> None:
    printed, bodies = run_with("tool_chat.py", model, with_tool)
    assert printed.splitlines() == ["[调用工具: search_files] Found files matching *.ts", "我找到了 1 个文件。"]
    assert all(body["tools"] for body in bodies)
    assert len(bodies) == 2


@pytest.mark.parametrize("model", ["gemini", "responses", "anthropic"])
def test_the_service_searches_and_its_sources_are_data(model: str) -> None:
    printed, bodies = run_with("search_chat.py", model, with_sources)
    assert "[1] 中国天气网 (https://weather.com.cn/beijing)" in printed
    assert "今天北京天气晴朗[1]" in printed
    search = ["google" in str(body.get("tools")).lower() or "web_search" in str(body.get("tools")) for body in bodies]
    assert search == [True, True, False]


@pytest.mark.parametrize("example", LINES)
def test_they_take_no_more_lines_than_in_the_documents(example: str) -> None:
    assert len((EXAMPLES / example).read_text(encoding="utf-8").splitlines()) <= LINES[example]


def test_every_one_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(LINES)
