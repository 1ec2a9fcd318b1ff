"""Our own configuration, approvals, keys and logs: no tool writes them unasked, wherever they lie."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import make_agent
from dragoman.base.places import Places, find_places
from dragoman.policy.own_files import OwnFiles
from dragoman.tools.workspace import PathRefusal, Workspace
from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolCall

OURS = (".config/dragoman/config.toml", ".config/dragoman/rules/new.toml", ".local/share/dragoman/grants.jsonl")
OURS += (".local/share/dragoman/sessions/x/old.jsonl", ".cache/dragoman/weights/a.gguf", ".local/share/dragoman/keys.json")
OURS += (".local/share/dragoman/mcp_tokens.json",)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "DRAGOMAN_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def own(home: Path, workspace: Path | None = None) -> OwnFiles:
    return OwnFiles([find_places({"HOME": str(home)}, "linux")], workspace=str(workspace or home))


@pytest.mark.parametrize("name", OURS)
def test_they_are_ours_whether_they_exist_or_not(home: Path, name: str) -> None:
    assert own(home).hold(str(home / name))
    (home / name).parent.mkdir(parents=True)
    (home / name).write_text("")
    assert own(home).hold(str(home / name))


@pytest.mark.parametrize("name", ["a.py", ".config/other/config.toml", ".config/dragoman-x/config.toml", "dragoman/config.toml", ".config"])
def test_what_is_beside_them_is_not_ours(home: Path, name: str) -> None:
    for each in OURS:
        (home / each).parent.mkdir(parents=True, exist_ok=True)
    assert not own(home).hold(str(home / name))


@pytest.mark.parametrize("name", [".Config/Dragoman/CONFIG.toml", ".config/dragoman/CONFIG.TOML"])
def test_upper_case_makes_no_difference(home: Path, name: str) -> None:
    assert own(home).hold(str(home / name))


def test_a_linked_folder_is_ours_where_it_lies(home: Path) -> None:
    """A repository of dotfiles, with the folder linked."""
    (home / "dotfiles" / "dragoman").mkdir(parents=True)
    (home / ".config").mkdir()
    (home / ".config" / "dragoman").symlink_to(home / "dotfiles" / "dragoman")
    assert own(home, home / "dotfiles").hold(str(home / "dotfiles" / "dragoman" / "config.toml"))


@pytest.mark.parametrize("name", ["config.toml", "prompt.md"])
def test_a_linked_file_is_ours_where_it_lies(home: Path, name: str) -> None:
    """A repository of dotfiles, with its files linked one by one; also where the link leads nowhere yet."""
    (home / "dotfiles").mkdir()
    (home / ".config" / "dragoman").mkdir(parents=True)
    (home / ".config" / "dragoman" / name).symlink_to(home / "dotfiles" / "mine")
    assert own(home, home / "dotfiles").hold(str(home / "dotfiles" / "mine"))
    assert not own(home, home / "dotfiles").hold(str(home / "dotfiles" / "other"))


def test_a_folder_around_the_workspace_guards_our_files_and_leaves_the_rest(tmp_path: Path) -> None:
    """DRAGOMAN_HOME may be the folder that holds the project too."""
    places = find_places({"DRAGOMAN_HOME": str(tmp_path)})
    work = tmp_path / "project"
    work.mkdir()
    for root in (work, tmp_path):
        ours = OwnFiles([places], workspace=str(root))
        assert not ours.hold(str(work / "a.py"))
        assert [ours.hold(path) for path in places.named_files] == [True] * len(places.named_files)


def test_dragoman_home_inside_the_workspace_is_ours_as_a_whole(tmp_path: Path) -> None:
    ours = OwnFiles([find_places({"DRAGOMAN_HOME": str(tmp_path / "state")})], workspace=str(tmp_path))
    assert ours.hold(str(tmp_path / "state" / "anything"))
    assert not ours.hold(str(tmp_path / "a.py"))


def test_files_that_were_named_count(tmp_path: Path) -> None:
    (tmp_path / "link.toml").symlink_to(tmp_path / "real.toml")
    assert OwnFiles([], [str(tmp_path / "link.toml")]).hold(str(tmp_path / "real.toml"))


@given(st.lists(st.sampled_from(["a", "B", "é", "É", ".config", "x y"]), min_size=1, max_size=5), st.data())
def test_everything_below_one_of_our_folders_is_ours_and_nothing_above(parts: list[str], data: Any) -> None:
    folder = "/nowhere/" + "/".join(parts)
    ours = OwnFiles([Places(folder, "/nowhere/data", "/nowhere/cache")], workspace="/work")
    below = "/".join(data.draw(st.lists(st.sampled_from(["a", "é", "..."]), max_size=3)))
    assert ours.hold(os.path.join(folder, below).rstrip("/"))
    assert not ours.hold(os.path.dirname(folder))
    assert not ours.hold(f"{folder}-evil")


# --- through an agent, with the real tools


class Asked:
    def __init__(self, *answers: Allow | Deny) -> None:
        self.views: list[Intent] = []
        self._answers = list(answers)

    async def __call__(self, call: ToolCall, view: Intent) -> Allow | Deny:
        self.views.append(view)
        return self._answers.pop(0)


def decide(agent: Any, name: str, **arguments: Any) -> Allow | Deny:
    found = agent.approvals.decide(ToolCall("c", name, json.dumps(arguments)))
    if isinstance(found, Allow | Deny):
        return found

    async def wait() -> Allow | Deny:
        return await found

    return asyncio.run(wait())


Start = Callable[..., Any]


@pytest.fixture
def start(home: Path) -> Start:
    from dragoman.testing.scripted import ScriptedProvider

    return lambda **options: make_agent(ScriptedProvider("text: ok"), **{"workspace": home, "approval": "auto-edit"} | options)


@pytest.mark.parametrize("name", OURS[:-2])
def test_in_auto_edit_a_model_is_asked_about_our_files_and_refused_where_nobody_is(start: Start, name: str) -> None:
    write = {"file_path": name, "content": "tools.discover = 'x'"}
    assert isinstance(decide(start(), "write_file", **write), Deny)
    ask = Asked(Allow())
    assert decide(start(ask=ask), "write_file", **write) == Allow()
    assert [view.guarded for view in ask.views] == ["own"]
    assert decide(start(), "write_file", file_path="a.py", content="x") == Allow()


def test_always_never_covers_our_files(start: Start) -> None:
    """Neither an `always` on another edit, nor one that was answered to the very question."""
    ask = Asked(Allow(remember="session"), Allow(remember="session"), Deny("no"))
    agent = start(ask=ask, approval="default")
    assert isinstance(decide(agent, "write_file", file_path="a.py", content="x"), Allow)
    assert isinstance(decide(agent, "write_file", file_path=".config/dragoman/config.toml", content="x"), Allow)
    assert decide(agent, "write_file", file_path=".config/dragoman/config.toml", content="x") == Deny("no")
    assert len(ask.views) == 3


def test_always_on_one_of_our_files_allows_no_other_edit(start: Start) -> None:
    ask = Asked(Allow(remember="session"), Deny("no"))
    agent = start(ask=ask, approval="default")
    decide(agent, "write_file", file_path=".config/dragoman/config.toml", content="x")
    assert decide(agent, "write_file", file_path="a.py", content="x") == Deny("no")


def test_the_folder_of_an_agents_own_sessions_is_guarded(start: Start, home: Path) -> None:
    agent = start(sessions=home / "kept")
    assert isinstance(decide(agent, "write_file", file_path="kept/x.jsonl", content="x"), Deny)


# --- keys are not read either


def test_no_tool_reads_or_writes_the_file_with_the_keys(start: Start, home: Path) -> None:
    file = home / OURS[-1]
    file.parent.mkdir(parents=True)
    file.write_text('{"anthropic": "sk-canary"}')
    os.link(file, home / "copy.json")
    (home / "link.json").symlink_to(file)
    agent = start(ask=Asked())

    def call(name: str, **arguments: Any) -> str:
        return asyncio.run(agent.tools.get(name).run(arguments, lambda text: None)).content[0].text

    for name in (OURS[-1], "copy.json", "link.json"):
        assert "holds the user's keys" in call("read_file", file_path=name)
        assert "holds the user's keys" in call("write_file", file_path=name, content="x")
    shown = call("read_many_files", paths=["*.json", OURS[-1]])
    shown += call("grep", pattern="canary", hidden=True) + call("grep", pattern="canary", path=".local", hidden=True)
    assert "sk-canary" not in shown
    assert file.read_text() == '{"anthropic": "sk-canary"}'


def test_a_workspace_refuses_a_secret_file_that_does_not_exist_yet(tmp_path: Path) -> None:
    with pytest.raises(PathRefusal, match="keys"):
        Workspace(tmp_path, secret=[tmp_path / "keys.json"]).resolve("keys.json", writing=True)
