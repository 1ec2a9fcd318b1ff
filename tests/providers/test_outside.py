"""Protocols, providers and tools that other packages bring."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

import dragoman as dm
from dragoman.base.plugins import PluginNotFound, load_plugin
from dragoman.tools.outside import load_tools

PACKAGE = '''
from collections.abc import AsyncGenerator

import dragoman as dm
from dragoman.providers import openai_chat as wire


class Echo(dm.Provider):
    def __init__(self, model: str) -> None:
        self._model = model

    @property
    def name(self) -> str:
        return "echo"

    def profile(self, model: str) -> dm.Profile:
        return dm.Profile()

    def prepare(self, request: dm.Request) -> dm.contracts.HttpRequest:
        return dm.contracts.HttpRequest("SAY", "echo://", {}, b"")

    async def stream(self, request: dm.Request) -> AsyncGenerator[dm.StreamEvent, None]:
        said = dm.assistant(f"{request.model} says: {request.messages[-1].text}")
        yield dm.TextDelta(said.text)
        yield dm.ResponseFinished(dm.FinishReason.STOP, dm.Response(said, dm.FinishReason.STOP))


def tides(harbour: str) -> str:
    """Say when the water is high."""
    return "04:05"


@dm.tool(read_only=True)
def moon() -> str:
    """Say how full the moon is."""
    return "full"


both = [tides, moon]
number = 7
'''
POINTS = """
[dragoman.providers]
echo = harbour_tools:Echo

[dragoman.protocols]
harbour = harbour_tools:wire

[dragoman.tools]
almanac = harbour_tools:both
gone = harbour_tools:nothing
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as an installer leaves it."""
    (tmp_path / "harbour_tools.py").write_text(PACKAGE)
    about = tmp_path / "harbour_tools-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: harbour-tools\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "harbour_tools", raising=False)


@pytest.mark.parametrize("model", ["echo/loud", "harbour_tools:Echo/loud"])
def test_a_provider_is_found_by_entry_point_and_by_module(model: str, tmp_path: Path) -> None:
    async def ask() -> str:
        async with dm.Agent(model, workspace=tmp_path, tools=dm.ToolOptions(builtin=False)) as agent:
            return (await agent.run("Ahoy")).text

    assert asyncio.run(ask()) == "loud says: Ahoy"


@pytest.mark.parametrize("protocol", ["harbour", "harbour_tools:wire"])
def test_a_protocol_is_found_by_entry_point_and_by_module(protocol: str) -> None:
    async def ask() -> str:
        async with dm.testing.MockServer("text: Aye.") as server:
            row = {"protocol": protocol, "base_url": f"{server.url}/v1", "auth": "none"}
            catalog = dm.builtin_catalog().with_rows({"mine": row})
            provider = dm.connect("mine/some-model", catalog=catalog)
            answer = await provider.generate(dm.build_request(provider.model, "Ahoy"))
            await provider.aclose()
            return answer.message.text

    assert asyncio.run(ask()) == "Aye."


def test_tools_are_functions_or_tools_one_or_several() -> None:
    assert [tool.spec.name for tool in load_tools("almanac")] == ["tides", "moon"]
    (tides,) = load_tools("harbour_tools:tides")
    assert tides.spec.name == "tides"
    assert not tides.spec.read_only, "so it asks before it runs"
    assert (asyncio.run(tides.run({"harbour": "Muscat"}, print)).content[0]) == dm.Text("04:05")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "no installed package has an entry point 'nowhere' in dragoman.tools; there are almanac, gone"),
        ("gone", "nothing"),
        ("harbour_tools:nothing", "nothing"),
        ("no_such_module:x", "no_such_module"),
        ("harbour_tools:number", "harbour_tools:number is a int"),
    ],
)
def test_what_cannot_be_loaded_is_told(name: str, words: str) -> None:
    with pytest.raises(dm.ConfigError, match=words):
        load_tools(name)


@pytest.mark.parametrize(
    ("model", "words"),
    [("harbour_tools:nothing/x", "harbour_tools:nothing"), ("harbour_tools:tides/x", "not a dragoman.Provider"), ("ecko/x", "ecko/x")],
)
def test_a_provider_that_cannot_be_loaded_is_told(model: str, words: str) -> None:
    with pytest.raises(dm.ConfigError, match=words):
        dm.connect(model)


@pytest.mark.parametrize(
    ("protocol", "words"), [("smoke", "Invalid protocol 'smoke'"), ("no_such:wire", "unknown protocol 'no_such:wire'")]
)
def test_an_unknown_protocol_is_told(protocol: str, words: str) -> None:
    row = {"protocol": protocol, "base_url": "http://127.0.0.1:1", "auth": "none"}
    with pytest.raises(dm.ConfigError, match=words):
        dm.connect("mine/x", catalog=dm.builtin_catalog().with_rows({"mine": row}))


def test_a_file_in_the_current_directory_is_not_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "lying_about.py").write_text("raise SystemExit('it ran')")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend("")
    with pytest.raises(PluginNotFound, match="lying_about"):
        load_plugin("lying_about:x", "dragoman.tools")
