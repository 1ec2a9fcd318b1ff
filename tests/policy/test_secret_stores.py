"""What commands do not see, no file tool shows either, whatever the workspace is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.policy.sandbox.boundary import Ground
from dragoman.policy.secret_stores import SECRETS, SecretStores
from dragoman.tools.workspace import PathRefusal, Workspace
from policy.sandbox.people import USERS, Told, person, require_level

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

SECRET = "SECRET-OF-MINE"
STORED = (".ssh/id_rsa", ".netrc", ".aws/credentials", ".config/gh/hosts.yml", ".bash_history", ".npmrc")
READS = (
    *(("read_file", {"file_path": name}) for name in STORED),
    ("read_file", {"file_path": "~/.ssh/id_rsa"}),
    ("read_file", {"file_path": "project/link"}),
    ("read_file", {"file_path": "project/../.ssh/id_rsa"}),
    ("read_many_files", {"paths": [*STORED, ".ssh/*", ".aws/**", "**/.netrc", ".*"]}),
    ("list_directory", {"path": ".ssh"}),
    ("glob", {"pattern": ".ssh/*"}),
    ("glob", {"pattern": "**/.aws/*"}),
    ("glob", {"pattern": "id_rsa", "path": ".ssh"}),
    *(("grep", {"pattern": "SECRET", "hidden": True, "output_mode": mode}) for mode in ("content", "files", "count")),
    ("grep", {"pattern": "SECRET", "path": ".ssh/id_rsa"}),
    ("grep", {"pattern": "SECRET", "path": ".ssh"}),
    ("grep", {"pattern": "SECRET", "include": ".ssh/*"}),
    ("edit", {"file_path": ".netrc", "old_string": "SECRET", "new_string": "x"}),
    ("run_shell", {"command": "cat .ssh/id_rsa .netrc .aws/credentials ~/.npmrc; true"}),
)


@pytest.mark.parametrize("mode", ["plan", "default", "auto"])
@pytest.mark.parametrize("user", USERS)
def test_at_home_nothing_shows_a_stored_key(user: str, mode: str) -> None:
    with person(user) as who:
        if mode == "auto":
            require_level(who, 1)
        for name in STORED:
            who.write(who.home / name, SECRET, 0o600)
        (who.home / "project").mkdir()
        (who.home / "project/link").symlink_to("../.ssh/id_rsa")
        told = who.let_call(*READS, options=("--approval", mode), at=who.home)
        require_nothing_shown(told)


@pytest.mark.parametrize("user", USERS)
def test_a_home_that_was_added_shows_none_either(user: str) -> None:
    with person(user) as who:
        for name in STORED:
            who.write(who.home / name, SECRET, 0o600)
        paths = [str(who.home / name) for name in STORED]
        reads = [("read_many_files", {"paths": paths}), ("grep", {"pattern": "SECRET", "path": str(who.home), "hidden": True})]
        told = who.let_call(*reads, options=("--include", str(who.home)))
        require_nothing_shown(told)


@pytest.mark.parametrize("name", [".ssh/id_rsa", "~/.ssh/id_rsa", ".netrc", ".ssh"])
def test_naming_one_in_a_prompt_does_not_send_it(name: str) -> None:
    with person(USERS[-1]) as who:
        for each in STORED:
            who.write(who.home / each, SECRET, 0o600)
        told = who.let_call(("read_file", {"file_path": "nothing"}), at=who.home, prompt=f"why does @{name} not work?")
        assert SECRET not in told.sent
        assert "keys or passwords" in told.done.err, told.done


def test_a_store_that_is_the_workspace_itself_is_read() -> None:
    """Whoever starts there shows it: commands see it too."""
    with person(USERS[-1]) as who:
        who.write(who.home / ".config/gh/hosts.yml", SECRET)
        told = who.let_call(("read_file", {"file_path": "hosts.yml"}), at=who.home / ".config/gh")
        assert SECRET in told.sent


def require_nothing_shown(told: Told) -> None:
    assert told.done.code in (0, 54), told.done
    assert len(told.results) > 1, told.done
    assert SECRET not in "\n".join(told.results)
    assert SECRET not in told.sent


NAMES = st.sampled_from([*SECRETS[:12], "project", "dotfiles", ".config", "a.txt", ".config/gh"])


@given(
    files=st.lists(st.tuples(NAMES, st.sampled_from(["", "/x", "/y/z"])), min_size=1, max_size=8),
    links=st.lists(st.tuples(NAMES, NAMES), max_size=3),
    root=st.sampled_from(["", "project", "dotfiles", ".config", ".config/gh", ".ssh"]),
)
def test_tools_hide_what_commands_do_not_see(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, str]], links: list[tuple[str, str]], root: str
) -> None:
    home = tmp_path_factory.mktemp("home")
    for name, rest in files:
        put(home / f"{name}{rest}")
    for name, to in links:
        link(home / name, home / to)
    top = home / root
    if not os.path.lexists(top) and (not os.path.lexists(top.parent) or top.parent.is_dir()):
        top.mkdir(parents=True)
    assume(top.is_dir())
    private = tmp_path_factory.mktemp("private")
    hidden = Ground([str(top)], homes=[str(home)], private=str(private)).draw().hidden
    stores = SecretStores([str(home)])
    workspace = Workspace(top, hides=stores.holds)
    for folder, inner, names in os.walk(workspace.root):
        for name in (*inner, *names):
            real = os.path.realpath(os.path.join(folder, name))
            is_hidden = any(real == each or real.startswith(f"{each}/") for each in hidden)
            if os.path.exists(real) and (real == workspace.root or real.startswith(f"{workspace.root}/")):
                assert workspace.hides(real) == is_hidden, (real, hidden)
                if is_hidden:
                    with pytest.raises(PathRefusal):
                        workspace.resolve(real)


def put(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    except OSError:
        pass  # a file stands where a folder would be


def link(path: Path, to: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(to)
    except OSError:
        pass


def test_other_ways_to_write_a_name_are_the_same_name(tmp_path: Path) -> None:
    stores = SecretStores([str(tmp_path)])
    assert stores.find(str(tmp_path / ".SSH/id_rsa"))
    assert not stores.find(str(tmp_path / ".sshd/id_rsa"))
    assert not stores.find("/")
