"""docs/embed/contracts.md: its members are those of the contracts, its code runs, and its promises hold of every implementation."""

from __future__ import annotations

import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dragoman as dm
from dragoman.sessions.blobs import FileBlobs
from dragoman.testing.journal import MemoryJournal
from dragoman.values.blobs import MemoryBlobs

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "embed" / "contracts.md").read_text(encoding="utf-8")
CODE = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))


def members_on_page(name: str) -> dict[str, str]:
    section = PAGE[PAGE.index(f"## {name}\n") :].partition("\n## ")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", section, re.MULTILINE))


def members_of(contract: type) -> dict[str, str]:
    """The members of a Protocol. One that has a body has a default."""
    abstract = getattr(contract, "__abstractmethods__", frozenset())
    own = [name for name in vars(contract) if not name.startswith("_")]
    if contract is dm.Provider:
        return {name: "required" if name in abstract else "default" for name in own}
    return dict.fromkeys(own, "required")


@pytest.mark.parametrize("name", ["Provider", "Tool", "Transport", "BlobStore", "Journal", "Store"])
def test_the_members_on_the_page_are_those_of_the_contract(name: str) -> None:
    assert members_on_page(name) == members_of(getattr(dm.contracts, name, None) or getattr(dm.stores, name))


def test_every_store_fits_the_contract() -> None:
    stores: list[type[dm.stores.Store]] = [dm.stores.FileStore, dm.stores.SqliteStore]
    for store in stores:
        for name in members_of(dm.stores.Store):
            ours, asked = getattr(store, name), getattr(dm.stores.Store, name)
            if callable(asked):
                parameters = inspect.signature(ours).parameters
                assert [each for each in inspect.signature(asked).parameters if each not in parameters] == [], f"{store}.{name}"


def test_every_name_of_the_module_is_on_the_page() -> None:
    public = {name for name in vars(dm.contracts) if name[0].isupper()}
    assert {name for name in public if not re.search(rf"\b{name}\b", PAGE)} == set()


def names_in_code() -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(CODE, "docs/embed/contracts.md", "exec"), names)
    return names


def test_the_code_on_the_page_runs(tmp_path: Path) -> None:
    names = names_in_code()
    assert asyncio.run(names["main"](tmp_path)) == ["Is anybody there?", "Aye."]
    assert isinstance(names["Echo"](), dm.Provider)
    assert isinstance(names["Soundings"](), dm.Tool)


def test_the_code_on_the_page_passes_the_type_checker(tmp_path: Path) -> None:
    checked, root = tmp_path / "contracts_page.py", Path(__file__).resolve().parent.parent
    checked.write_text(CODE, encoding="utf-8")
    command = [Path(sys.executable).with_name("pyrefly"), "check", "--preset", "default", "--search-path", root / "src", checked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_journal_on_the_page_holds_what_can_be_gone_on_from() -> None:
    journal = names_in_code()["Lines"]()
    with dm.Agent(dm.testing.ScriptedProvider("text: Aye."), session=dm.History(journal)) as agent:
        agent.run_sync("Hello?")
        request = agent.history.request
    assert dm.History(entries=map(dm.record.decode_entry, journal.lines)).request == request


# --- providers


def test_the_defaults_of_a_provider_are_as_the_page_says() -> None:
    provider = names_in_code()["Echo"]()
    request = dm.build_request("m", "Hello")
    assert (provider.model, provider.deployment, provider.blobs, provider.dialect) == ("", None, None, "")

    async def go() -> None:
        assert (await provider.generate(request)).message.text == "Hello"
        with pytest.raises(dm.errors.Unsupported):
            await provider.count_tokens(request)
        with pytest.raises(dm.errors.Unsupported):
            await provider.embed(["a"])
        await provider.preconnect()
        await provider.aclose()
        provider.look_in(MemoryBlobs())

    asyncio.run(go())


def test_a_wrapping_provider_delegates_every_member() -> None:
    """A member that is added to the contract and forgotten here would be the contract's default, and not the wrapped provider's."""
    wrapping = vars(dm.contracts.WrappingProvider)
    assert {name for name in members_of(dm.Provider) if name not in wrapping} == set()


# --- tools


ARGUMENTS: dict[str, dict[str, Any]] = {
    "read_file": {"file_path": "a.txt"},
    "read_many_files": {"paths": ["*.txt"]},
    "list_directory": {"path": "."},
    "glob": {"pattern": "*"},
    "grep": {"pattern": "["},
    "edit": {"file_path": "a.txt", "old_string": "one", "new_string": "two"},
    "write_file": {"file_path": "b.txt", "content": "two"},
    "run_shell": {"command": "touch b.txt"},
    "shell_output": {"id": "bg1", "stop": True},
    "todo": {"items": []},
    "task": {"agent": "explore", "description": "look", "prompt": "Look."},
}


def test_built_in_tools_change_nothing_when_they_say_what_they_would_do(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    agent = dm.coding_agent(dm.testing.ScriptedProvider(""), workspace=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*")}
    for name, args in ARGUMENTS.items():
        tool = agent.tools.get(name)
        assert isinstance(tool, dm.Tool)
        assert isinstance(tool.intend(args), dm.Intent)
    assert set(ARGUMENTS) == set(agent.tools.names)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_what_a_tool_raises_all_the_same_becomes_an_error_result() -> None:
    class Broken(names_in_code()["Soundings"]):  # type: ignore[misc]
        async def run(self, args: object, show: object) -> dm.ToolOutput:
            raise RuntimeError("the line is lost")

    with dm.Agent(dm.testing.ScriptedProvider("call: sound {}\n---\ntext: Lost."), tools=[Broken()]) as agent:
        assert agent.run_sync("Sound.").text == "Lost."
        results = [result for message in agent.history.view.messages for result in message.results]
    assert results[0].is_error
    assert "the line is lost" in results[0].text


# --- stores


STORES: dict[str, Callable[[Path], Any]] = {
    "in memory": lambda folder: MemoryBlobs(),
    "in files": FileBlobs,
    "in files that cannot be written": lambda folder: FileBlobs("/proc/no/such/folder"),
    "on the page": lambda folder: names_in_code()["Folder"](folder),
}


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_a_store_gives_back_what_it_was_given_and_nothing_else(make: Callable[[Path], Any], tmp_path: Path) -> None:
    store = make(tmp_path)
    first, again = store.put("image/png", b"bytes"), store.put("image/png", b"bytes")
    assert first == again
    assert (first.size, store.get(first.sha256)) == (5, b"bytes")
    assert store.get("0" * 64) is None
    with ThreadPoolExecutor(4) as threads:
        blobs = list(threads.map(lambda number: store.put("text/plain", b"%d" % (number % 5)), range(40)))
    assert [store.get(blob.sha256) for blob in blobs] == [b"%d" % (number % 5) for number in range(40)]


# --- journals


def test_everything_is_synced_before_the_prompt_is_sent_and_before_a_result_is_told() -> None:
    journal = MemoryJournal()
    seen: list[tuple[str, bool]] = []
    with dm.Agent(
        dm.testing.ScriptedProvider('call: sound {"place": "here"}\n---\ntext: Done.'),
        tools=[names_in_code()["Soundings"]()],
        session=dm.History(journal),
    ) as agent:
        told = (event for event in agent.stream_sync("Sound.") if isinstance(event, dm.events.PromptAccepted | dm.ToolCallFinished))
        seen += [(type(event).__name__, journal.synced > 0) for event in told]
    assert seen == [("PromptAccepted", True), ("ToolCallFinished", True)]
    assert journal.synced == len(journal.entries)
    assert not inspect.iscoroutinefunction(journal.append)
