"""May it run: the modes, what a person is asked, and what stays asked."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman.policy.approvals import Approvals
from dragoman.policy.git_folder import is_in_repository
from dragoman.policy.grants import Grants
from dragoman.policy.guarded_files import is_guarded
from dragoman.policy.judge import MustAsk, grant_key, judge
from dragoman.values.calls import Allow, Deny, Intent, Show, ToolOutput
from dragoman.values.messages import ToolCall, ToolKind, ToolSpec


def spec(name: str = "edit", kind: ToolKind = "edit", read_only: bool = False) -> ToolSpec:
    return ToolSpec(name, "", kind=kind, read_only=read_only)


READ = spec("read_file", "read", read_only=True)
EDIT = spec()
SHELL = spec("run_shell", "execute")
CHANGE = Intent("edit a.py", "-a\n+b", ("/w/a.py",))
COMMAND = Intent("$ make", "make")


@pytest.mark.parametrize("mode", ["plan", "default", "auto-edit"])
def test_reading_runs_in_every_mode(mode: Any) -> None:
    assert judge(READ, Intent(), mode) == Allow()


def test_by_default_writes_and_commands_ask() -> None:
    assert judge(EDIT, CHANGE, "default") == MustAsk(CHANGE)
    assert judge(SHELL, COMMAND, "default") == MustAsk(COMMAND)


def test_plan_mode_refuses_what_is_not_reading() -> None:
    assert isinstance(judge(EDIT, CHANGE, "plan", frozenset({"edit"})), Deny)


def test_auto_edit_lets_edits_run_and_commands_ask() -> None:
    assert judge(EDIT, CHANGE, "auto-edit") == Allow()
    assert judge(SHELL, COMMAND, "auto-edit") == MustAsk(COMMAND)


def test_an_edit_that_does_not_say_what_it_writes_asks() -> None:
    assert isinstance(judge(EDIT, Intent("edit"), "auto-edit"), MustAsk)


@pytest.mark.parametrize(
    "path", ["/w/.git/hooks/pre-commit", "/w/.dragoman/config.toml", "/w/.vscode/tasks.json", "/h/.bashrc", "/w/AGENTS.md"]
)
def test_files_that_run_or_are_believed_later_always_ask(path: str) -> None:
    intent = Intent("edit", "", (path,))
    assert isinstance(judge(EDIT, intent, "auto-edit", frozenset({"edit"})), MustAsk)


@pytest.mark.parametrize(
    "path", ["/w/a.py", "/w/git/x", "/w/.gitignore", "/w/docs/bashrc.md", "/w/git~x/a", "/w/a~1", "/w/中文/x.md", "/w/.gitattributes"]
)
def test_ordinary_files_are_not_guarded(path: str) -> None:
    assert not is_guarded(path)


HOSTILE_PLACES = (
    ".zlogout .bash_aliases .vimrc .exrc .emacs .tmux.conf .gdbinit .pre-commit-config.yaml .devcontainer.json .gitlab-ci.yml "
    "CLAUDE.local.md .config/fish/config.fish .ssh/authorized_keys .cursor/mcp.json .GitHub/Workflows/ci.yml "
    ".devcontainer/devcontainer.json .cargo/config.toml "
    ".config/systemd/user/x.service .local/bin/ls .vim/plugin/x.vim my.code-workspace sub/HEAD .hg/hgrc sitecustomize.py "
    ".helix/languages.toml .nvim.lua .irbrc .Rprofile .gradle/init.gradle .mvn/extensions.xml .forgejo/workflows/a.yml Jenkinsfile "
    "lefthook.yaml .githooks/pre-push Library/LaunchAgents/x.plist .config/environment.d/x.conf "
    ".git./hooks/x .GIT/config .g\u200cit/config .git\u200d/config GIT~1/config .git::$INDEX_ALLOCATION/config "
    ".\uff47it/config .\u017fsh/authorized_keys .bashrc. .bashrc::$DATA AGENTS\uff0emd a/.git"
)


@pytest.mark.parametrize("path", HOSTILE_PLACES.split())
def test_what_shells_editors_and_builds_run_by_themselves_is_guarded(path: str) -> None:
    verdict = judge(EDIT, Intent("edit", "", (f"/w/{path}",)), "auto-edit", frozenset({"edit"}))
    assert isinstance(verdict, MustAsk)
    assert verdict.view.guarded == "trusted"


def test_a_repositorys_own_files_are_guarded_whatever_its_folder_is_called(tmp_path: Path) -> None:
    """As where a `.git` file leads, and in a bare one."""
    for name, inner in (("store", "objects"), ("linked", "commondir")):
        (tmp_path / name / inner).mkdir(parents=True)
        (tmp_path / name / "HEAD").touch()
        assert is_in_repository(str(tmp_path / name / "hooks" / "post-commit"))
    assert not is_in_repository(str(tmp_path / "src" / "a.py"))


def test_always_covers_all_edits_but_only_this_command() -> None:
    granted = frozenset({grant_key(EDIT, CHANGE), grant_key(SHELL, COMMAND)})
    assert judge(EDIT, Intent("edit b.py", "", ("/w/b.py",)), "default", granted) == Allow()
    assert judge(SHELL, COMMAND, "default", granted) == Allow()
    assert isinstance(judge(SHELL, Intent("$ make", "make; rm -rf ."), "default", granted), MustAsk)


class Command:
    """A tool that would run a command."""

    spec = SHELL

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return Intent(f"$ {args.get('command')}", str(args.get("command")))

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        raise AssertionError("nothing is run here")


CALL = ToolCall("c", "run_shell", '{"command":"make"}')


def find(name: str) -> Command | None:
    return Command() if name == "run_shell" else None


def decide(approvals: Approvals, call: ToolCall = CALL) -> Allow | Deny:
    found = approvals.decide(call)
    if isinstance(found, Allow | Deny):
        return found

    async def wait() -> Allow | Deny:
        return await found

    return asyncio.run(wait())


def answering(*answers: Allow | Deny) -> tuple[Any, list[Intent]]:
    left, shown = list(answers), []

    async def ask(call: ToolCall, view: Intent) -> Allow | Deny:
        shown.append(view)
        return left.pop(0)

    return ask, shown


def test_with_nobody_to_ask_it_is_refused_and_says_so() -> None:
    denied = decide(Approvals(find))
    assert isinstance(denied, Deny)
    assert "nobody can be asked" in denied.reason


def test_once_means_once() -> None:
    ask, shown = answering(Allow(), Deny("no"))
    approvals = Approvals(find, ask=ask)
    assert decide(approvals) == Allow()
    assert decide(approvals) == Deny("no")
    assert len(shown) == 2


def test_for_the_session_means_not_again() -> None:
    ask, shown = answering(Allow(remember="session"))
    approvals = Approvals(find, ask=ask)
    decide(approvals)
    assert decide(approvals) == Allow()
    assert len(shown) == 1


def test_what_a_person_edited_is_what_is_remembered() -> None:
    ask, _ = answering(Allow('{"command":"make test"}', remember="session"), Deny("asked again"))
    approvals = Approvals(find, ask=ask)
    decide(approvals)
    assert decide(approvals, ToolCall("d", "run_shell", '{"command":"make test"}')) == Allow()
    assert decide(approvals) == Deny("asked again"), "the model's own version was not approved"


def test_edited_arguments_that_are_no_object_are_refused() -> None:
    ask, _ = answering(Allow("make"))
    assert isinstance(decide(Approvals(find, ask=ask)), Deny)


def test_saved_grants_hold_in_later_sessions_of_the_same_folder(tmp_path: Path) -> None:
    file = tmp_path / "data" / "grants.jsonl"
    ask, _ = answering(Allow(remember="saved"))
    decide(Approvals(find, ask=ask, grants=Grants(str(file), "/w")))
    assert decide(Approvals(find, grants=Grants(str(file), "/w"))) == Allow()
    assert isinstance(decide(Approvals(find, grants=Grants(str(file), "/other"))), Deny)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_every_folder_made_for_saved_grants_is_for_the_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Grants(str(tmp_path / "share" / "data" / "grants.jsonl"), "/w").add("one", saved=True)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "share").stat().st_mode) == 0o700


def test_a_grant_that_cannot_be_saved_holds_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    grants = Grants(str(tmp_path / "file" / "grants.jsonl"), "/w")
    grants.add("one", saved=True)
    assert grants.keys == {"one"}


def test_a_torn_grants_file_grants_nothing_and_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "grants.jsonl"
    Grants(str(file), "/w").add("one", saved=True)
    file.write_bytes(file.read_bytes() + b'{"folder":"/w","ke')
    Grants(str(file), "/w").add("two", saved=True)
    assert Grants(str(file), "/w").keys == {"one", "two"}


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs O_NOFOLLOW")
def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / "grants.jsonl").symlink_to(target)
    Grants(str(tmp_path / "grants.jsonl"), "/w").add("one", saved=True)
    assert not target.exists()
