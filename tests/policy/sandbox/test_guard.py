"""What a command leaves behind that git, agents or other programs go by is prevented, undone from inside, or told."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.policy.sandbox.boundary import Ground
from dragoman.policy.sandbox.guard import Guard
from dragoman.policy.sandbox.launcher.calls import open_tree
from dragoman.policy.sandbox.repositories import find_repositories
from dragoman.policy.sandbox.survey import Survey
from policy.sandbox.sandboxes import LEVELS, bash, sandbox_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

EVIL = '[core]\n\tfsmonitor = "touch PWN"\n'
GIT = "git -c user.name=a -c user.email=a@b"


def git(folder: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", "-C", str(folder), *arguments]
    subprocess.run(command, check=True, capture_output=True)


def make_repository(place: Path, config: str = "[core]\n\tbare = false\n") -> Path:
    for name in ("objects", "refs", "hooks"):
        (place / ".git" / name).mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (place / ".git" / "config").write_bytes(config.encode())
    return place / ".git"


def guard_of(workspace: Path) -> Guard:
    roots = (str(workspace),)
    seen = Survey(roots).look()
    return Guard(roots, find_repositories(roots, seen.repositories), near=seen.near, inodes=seen.inodes)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: kind and mode, content or target."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        mode = path.lstat().st_mode
        content = os.fsencode(os.readlink(path)) if stat.S_ISLNK(mode) else path.read_bytes() if stat.S_ISREG(mode) else b""
        found[str(path)] = mode, content
    return found


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return tmp_path.resolve() / "work"


@pytest.fixture
def home(workspace: Path) -> Path:
    """A home with what a user holds dear, beside the workspace."""
    home = workspace.parent / "home"
    for name in ("Documents/letter.txt", "Documents/config", "Documents/modules/a", "hooks/pre-commit", ".ssh/authorized_keys"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("mine")
    library = home / "src" / "lib"
    library.mkdir(parents=True)
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "one")
    git(library, "worktree", "add", "-q", str(home / "src" / "lib-tree"))
    (library / ".git" / "modules").mkdir()
    (library / ".git" / "modules" / "kept").write_text("mine")
    return home


# --- nothing of ours acts through what a command prepared

SWAPS = {
    "a repository is swapped for one elsewhere": "mv sub s2; ln -s {home}/src/lib sub",
    "its git directory is swapped for a folder elsewhere": "mv sub s2; mkdir sub; ln -s {home}/Documents sub/.git",
    "a folder of hooks is swapped for the home": "mv githooks h2; ln -s {home} githooks",
    "a folder above it is swapped": "mv a a2; ln -s {home} a",
    "hooks that were not there are a link": "ln -s {home}/hooks newhooks",
    "agents' folders are links": "for each in .claude .dragoman .mcp.json; do ln -s {home}/Documents $each; done",
    "the git directory of the workspace is swapped": "mv .git g2; ln -s {home}/src/lib/.git .git; rm .git; ln -s {home}/Documents .git",
    "names in the git directory are links": "for each in commondir config.worktree info2 lfs2; do ln -s {home}/Documents .git/$each; done",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("command", SWAPS.values(), ids=SWAPS)
def test_nothing_outside_is_touched_whatever_was_swapped(level: int, command: str, workspace: Path, home: Path) -> None:
    make_repository(workspace, "[core]\n\thooksPath = githooks\n[include]\n\tpath = ../newhooks/config\n")
    make_repository(workspace / "sub", "[core]\n\thooksPath = ../a/.ssh\n")
    for name in ("githooks/authorized_keys", "a/.ssh/authorized_keys"):
        (workspace / name).parent.mkdir(parents=True)
        (workspace / name).write_text("hostile")
    before = snapshot(home)
    with sandbox_at(level, workspace) as sandbox:
        for _ in range(2):
            asyncio.run(bash(sandbox, command.format(home=home), workspace))
    assert snapshot(home) == before


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_outside_is_touched_while_links_are_swapped(level: int, workspace: Path, home: Path) -> None:
    """A command in the background swaps a repository for one elsewhere, again and again, while others end."""
    make_repository(workspace / "sub")
    before = snapshot(home)
    swap = f"ln -s {home}/src/lib other; while :; do mv sub s2; mv other sub; mv sub other; mv s2 sub; done"

    async def both() -> None:
        swapping = asyncio.ensure_future(bash(sandbox, f"timeout 60 bash -c '{swap}'", workspace))
        for number in range(12):
            await bash(sandbox, f"echo x > sub/.git/commondir; mkdir -p .git; echo {number} > .git/odd{number}; true", workspace)
        swapping.cancel()
        await asyncio.gather(swapping, return_exceptions=True)

    with sandbox_at(level, workspace) as sandbox:
        asyncio.run(both())
    assert snapshot(home) == before


def test_what_is_fixed_is_not_taken_from_behind_a_link(workspace: Path, home: Path) -> None:
    """Else a command that swaps a repository for a link while another starts would show that one what lies behind it."""
    (workspace / "sub").symlink_to(home)
    for path in ("sub", "sub/.ssh", "sub/.ssh/authorized_keys"):
        with pytest.raises(NotADirectoryError):
            open_tree(str(workspace / path), follow=False)
    with pytest.raises(FileNotFoundError):
        open_tree(str(workspace / "gone"), follow=False)


# --- prevented

CHANGES = (
    "echo x > {git}/hooks/pre-commit; echo x >> {git}/config; mv {git}/hooks {git}/h; mkdir {git}/hooks; echo x > {git}/hooks/post-commit; "
    "echo ../x > {git}/commondir; echo x > {git}/config.worktree; true"
)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["folder", "link", "file", "bare", "crowded"])
def test_hooks_and_settings_of_the_workspaces_own_repository_stay(level: int, kind: str, workspace: Path) -> None:
    real = make_repository(workspace)
    if kind in ("link", "file"):
        real = real.rename(workspace / "elsewhere")
        (workspace / ".git").symlink_to("elsewhere") if kind == "link" else (workspace / ".git").write_text("gitdir: elsewhere\n")
    elif kind == "bare":
        for path in real.iterdir():
            path.rename(workspace / path.name)
        real.rmdir()
        real = workspace
    elif kind == "crowded":
        for number in range(250):
            (workspace / f"folder{number}").mkdir()
    (real / "hooks" / "update").write_text("true")
    before = snapshot(real / "hooks") | snapshot(real / "config")
    with sandbox_at(level, workspace) as sandbox:
        asyncio.run(bash(sandbox, CHANGES.format(git=real), workspace))
    assert snapshot(real / "hooks") | snapshot(real / "config") == before
    assert not (real / "commondir").exists()
    assert not (real / "config.worktree").exists()


@pytest.mark.parametrize("level", LEVELS)
def test_settings_of_a_linked_worktree_stay(level: int, workspace: Path, home: Path) -> None:
    tree = home / "src" / "lib-tree"
    own = home / "src" / "lib" / ".git" / "worktrees" / "lib-tree"
    with sandbox_at(level, tree) as sandbox:
        ended, said = asyncio.run(bash(sandbox, f"echo a > a && {GIT} add a && {GIT} commit -qm a && echo fine", tree))
        assert (ended.code, said) == (0, "fine\n")
        asyncio.run(bash(sandbox, f"echo x > {own}/config.worktree; echo /x > {own}/commondir", tree))
    assert not (own / "config.worktree").exists()
    assert (own / "commondir").read_text() == "../..\n"


@pytest.mark.parametrize("level", LEVELS)
def test_git_goes_on_working(level: int, workspace: Path) -> None:
    git(workspace, "init", "-q", "-b", "main")
    work = (
        f"echo a > a && {GIT} add a && {GIT} commit -qm a && echo b > a && {GIT} stash -q && {GIT} stash pop -q && {GIT} commit -qam b && "
        f"{GIT} checkout -qb other HEAD~ && echo c > c && {GIT} add c && {GIT} commit -qm c && {GIT} rebase -q main && {GIT} tag t && "
        f"{GIT} checkout -q main && {GIT} merge -q other && {GIT} gc -q && {GIT} log --oneline | wc -l"
    )
    with sandbox_at(level, workspace) as sandbox:
        ended, said = asyncio.run(bash(sandbox, work, workspace))
    assert (ended.code, said.strip(), ended.remark) == (0, "3", "")


@pytest.mark.parametrize("level", LEVELS)
def test_a_new_worktree_of_the_workspaces_own_repository_is_not_told(level: int, workspace: Path) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "first")
    with sandbox_at(level, workspace) as sandbox:
        ended, said = asyncio.run(bash(sandbox, f"{GIT} worktree add -q tree && {GIT} -C tree status -sb", workspace))
    assert (ended.code, said, ended.remark) == (0, "## tree\n", "")


@pytest.mark.parametrize(
    "more",
    [
        "echo ../../../elsewhere > .git/worktrees/tree/commondir",
        "echo x > .git/worktrees/tree/config.worktree",
        "mkdir .git/worktrees/tree/hooks",
        "ln -s /etc/passwd .git/worktrees/tree/refs.lock",
        "mkdir .git/worktrees/tree/rebase-merge; echo 'exec x' > .git/worktrees/tree/rebase-merge/git-rebase-todo",
        "mkdir other; cp -r .git other/; echo gitdir: $PWD/other/.git/worktrees/tree > tree/.git",
    ],
)
def test_a_new_worktree_that_brings_more_is_told(more: str, workspace: Path) -> None:
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "first")
    with sandbox_at(1, workspace) as sandbox:
        ended, _ = asyncio.run(bash(sandbox, f"{GIT} worktree add -q tree && {more}", workspace))
    assert ended.code == 0
    assert "tree/.git" in ended.remark


@pytest.mark.parametrize("level", [1, 2])
def test_agents_files_that_are_there_are_read_only(level: int, workspace: Path) -> None:
    (workspace / ".claude").mkdir()
    (workspace / ".claude" / "settings.json").write_text("{}")
    (workspace / ".mcp.json").write_text("{}")
    attack = "echo x > .claude/settings.json; mkdir .claude/skills; rm -rf .claude; mv .claude old; echo x > .mcp.json; true"
    before = snapshot(workspace)
    with sandbox_at(level, workspace) as sandbox:
        asyncio.run(bash(sandbox, attack, workspace))
    assert snapshot(workspace) == before


# --- undone from inside


@pytest.mark.parametrize("level", LEVELS)
def test_names_that_lead_git_elsewhere_are_removed_and_told(level: int, workspace: Path) -> None:
    git(workspace, "init", "-q")
    git(workspace, "init", "-q", "services/eu/billing")
    deep = workspace / "services/eu/billing"
    made = "mkdir -p {0}/commondir/a && chmod 0 {0}/commondir && mkfifo {0}/config.worktree && echo x > {0}/odd && echo y > {0}/description"
    with sandbox_at(level, workspace) as sandbox:
        ended, _ = asyncio.run(bash(sandbox, "; ".join(made.format(each) for each in (".git", deep / ".git")), workspace))
    for folder in (workspace, deep):
        assert not {"commondir", "config.worktree", "odd"} & set(os.listdir(folder / ".git"))
        assert (folder / ".git" / "description").read_text() == "y\n", "git's own names are left alone"
    assert "Undone" in ended.remark
    assert ".git/commondir" in ended.remark
    assert ".git/commondir" in ended.notice


def test_at_level_three_hooks_and_settings_are_put_back_from_inside(workspace: Path) -> None:
    git(workspace, "init", "-q")
    real = workspace / ".git"
    (real / "hooks" / "update").write_text("true")
    (real / "hooks" / "linked").symlink_to("update")
    before = snapshot(real / "hooks") | snapshot(real / "config")
    hostile = "rm -rf .git/hooks; mkfifo .git/hooks; rm .git/config; mkdir -p .git/config/x; true"
    with sandbox_at(3, workspace) as sandbox:
        ended, _ = asyncio.run(bash(sandbox, hostile, workspace))
        assert snapshot(real / "hooks") | snapshot(real / "config") == before
        assert ".git/config" in ended.remark
        asyncio.run(bash(sandbox, f"mv .git g2; git init -q; {CHANGES.format(git='.git')}", workspace))
    assert (real / "config").read_bytes() == before[str(real / "config")][1]
    assert not (real / "hooks" / "pre-commit").exists()


def test_what_cannot_be_undone_is_told(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(workspace, "init", "-q")
    with sandbox_at(1, workspace) as sandbox:

        async def mend_nothing(*_: object) -> None:
            return None

        assert sandbox._care is not None
        monkeypatch.setattr(sandbox._care, "_mend", mend_nothing)
        ended, _ = asyncio.run(bash(sandbox, "echo x > .git/commondir", workspace))
    assert "could not be undone" in ended.remark
    assert "could not be undone" in ended.notice


# --- told


@pytest.mark.parametrize("level", LEVELS)
def test_a_new_repository_of_which_git_would_run_something_is_told_and_left(level: int, workspace: Path) -> None:
    bad = "git init -q a && git -C a config core.fsmonitor 'touch PWN'; git init -q b && echo true > b/.git/hooks/post-commit; "
    bad += "git init -q --bare c && git -C c config core.pager x; mkdir d && ln -s /etc d/.git; "
    bad += "git init -q deep/er && touch deep/er/.git/hooks/x"
    with sandbox_at(level, workspace) as sandbox:
        ended, said = asyncio.run(bash(sandbox, f"{bad}; git init -q good; git init -q --bare fine", workspace))
        assert ended.code == 0, said
    told = ended.remark.partition("run something of it: ")[2].partition(". The user")[0].split(", ")
    assert sorted(told) == ["a/.git", "b/.git", "c", "d/.git", "deep/er/.git"]
    assert (workspace / "a/.git/config").exists(), "nothing is moved or removed"
    assert "a/.git" in ended.notice


@pytest.mark.parametrize(
    "config",
    [EVIL, f"[core]\n\tbare = false\n[advice] {EVIL.replace(chr(10), '')}", "[core]\n# \x0c[advice]\n\tfsmonitor = x\n",
     "[core]\n# \r[advice]\n\tfsmonitor = x\n", "[core]\n# \u2028[color]\n\tfsmonitor = x\n", f"#{'x' * 1_000_000}\n{EVIL}",
     "[core]\n\tbare = \\\n[advice]\nfsmonitor = x\n", '[advice "]\n"]\n' + EVIL],
)  # fmt: skip
def test_settings_that_could_be_read_in_two_ways_are_told(config: str, workspace: Path) -> None:
    guard = guard_of(workspace)
    made = make_repository(workspace / "new", config)
    assert guard.look().running == (str(made),)


def test_a_new_repository_that_runs_nothing_is_not_told(workspace: Path) -> None:
    guard = guard_of(workspace)
    make_repository(workspace / "new", '[core]\n\tbare = false\n[remote "origin"]\n\turl = x ; y\n[advice] a = b\n# [core]\n')
    assert guard.look()[1:] == ((), (), ())


def test_another_repository_in_the_place_of_one_is_told(workspace: Path) -> None:
    make_repository(workspace / "sub")
    guard = guard_of(workspace)
    (workspace / "sub").rename(workspace / "elsewhere")
    put = make_repository(workspace / "sub", EVIL)
    assert str(put) in guard.look().running


@pytest.mark.parametrize(
    ("config", "name"),
    [("[core]\n\thooksPath = .githooks\n", ".githooks/pre-commit"), ("[include]\n\tpath = ../shared.cfg\n", "shared.cfg"),
     ('[includeIf "gitdir:x"]\n\tpath = "../shared.cfg"\n', "shared.cfg")],
)  # fmt: skip
@pytest.mark.parametrize("is_there", [True, False])
def test_hooks_and_settings_that_lie_beside_the_files_are_told(config: str, name: str, is_there: bool, workspace: Path) -> None:
    make_repository(workspace, config)
    file = workspace / name
    file.parent.mkdir(exist_ok=True)
    if is_there:
        file.write_text("as it was")
        wait_for_the_clock(file)
    guard = guard_of(workspace)
    assert not is_there or guard.look().running == ()
    file.write_text("touch PWN")
    assert str(file) in guard.look().running
    assert file.read_text() == "touch PWN"


def test_a_hook_that_is_a_link_into_the_tree_is_told(workspace: Path) -> None:
    real = make_repository(workspace)
    (workspace / "scripts").mkdir()
    (workspace / "scripts" / "check").write_text("true")
    (real / "hooks" / "pre-commit").symlink_to("../../scripts/check")
    wait_for_the_clock(real / "hooks" / "pre-commit")
    guard = guard_of(workspace)
    (workspace / "scripts" / "check").write_text("touch PWN")
    assert guard.look().running == (str(workspace / "scripts" / "check"),)


SWAPPED = {
    "a link": "rm -rf scripts; ln -s {home} scripts",
    "a folder that was there before": "rm -rf scripts; mv other scripts",
    "a link on the way": "ln -sfn other way",
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("command", SWAPPED.values(), ids=SWAPPED)
def test_other_hooks_by_another_folder_on_the_way_are_told(level: int, command: str, workspace: Path, home: Path) -> None:
    """None of the files that git would run then is new."""
    for folder in ("scripts/hooks", "other/hooks"):
        (workspace / folder).mkdir(parents=True)
        (workspace / folder / "pre-commit").write_text(folder)
    (workspace / "way").symlink_to("scripts")
    real = make_repository(workspace)
    (real / "hooks").rmdir()
    (real / "hooks").symlink_to("../way/hooks")
    wait_for_the_clock(workspace / "way")
    with sandbox_at(level, workspace) as sandbox:
        ended, said = asyncio.run(bash(sandbox, command.format(home=home), workspace))
        again, _ = asyncio.run(bash(sandbox, "true", workspace))
    assert ended.code == 0, said
    assert "git would run something of it: .git/hooks" in ended.remark
    assert ".git/hooks" in ended.notice
    assert again.remark == ""


@pytest.mark.parametrize(
    ("config", "link", "target", "told"),
    [("[core]\n\thooksPath = a/hooks\n", "", "", "a/hooks"), ("[include]\n\tpath = ../a/shared.cfg\n", "", "", ".git/../a/shared.cfg"),
     ("", ".git/hooks/pre-commit", "../../a/check", ".git/hooks/pre-commit"),
     ("[core]\n\thooksPath = own\n", "own/pre-commit", "../a/check", "own/pre-commit")],
)  # fmt: skip
@pytest.mark.parametrize("is_there", [True, False])
def test_what_settings_and_links_name_is_told_where_it_becomes_another(
    config: str, link: str, target: str, told: str, is_there: bool, workspace: Path
) -> None:
    make_repository(workspace, config)
    for name in ("a", "b") if is_there else ("b",):
        for file in ("hooks/pre-push", "shared.cfg", "check"):
            (workspace / name / file).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name / file).write_text("")
    if link:
        (workspace / link).parent.mkdir(exist_ok=True)
        (workspace / link).symlink_to(target)
    wait_for_the_clock(workspace / "b" / "check")
    guard = guard_of(workspace)
    assert guard.look().running == ()
    if is_there:
        (workspace / "a").rename(workspace / "c")
    assert guard.look().running == (), "nothing is there that git could run"
    (workspace / "b").rename(workspace / "a")
    assert guard.look().running == (str(workspace / told),)


def test_the_target_of_a_link_among_hooks_beside_the_files_is_told(workspace: Path) -> None:
    make_repository(workspace, "[core]\n\thooksPath = githooks\n")
    for name in ("githooks", "scripts"):
        (workspace / name).mkdir()
    (workspace / "scripts" / "check").write_text("true")
    (workspace / "githooks" / "pre-commit").symlink_to("../scripts/check")
    wait_for_the_clock(workspace / "githooks" / "pre-commit")
    guard = guard_of(workspace)
    (workspace / "scripts" / "check").write_text("touch PWN")
    assert guard.look().running == (str(workspace / "scripts" / "check"),)


def test_hooks_elsewhere_are_not_told(workspace: Path) -> None:
    for path in ("/usr/share/hooks", "..", ".", ".git/hooks", "~/hooks"):
        real = make_repository(workspace, f"[core]\n\thooksPath = {path}\n")
        wait_for_the_clock(real / "config")
        guard = guard_of(workspace)
        (workspace / "file").write_text(path)
        assert guard.look().running == ()
        subprocess.run(["rm", "-rf", str(real)], check=True)


def test_steps_of_a_rebase_that_run_something_are_told(workspace: Path) -> None:
    real = make_repository(workspace)
    guard = guard_of(workspace)
    (real / "rebase-merge").mkdir()
    (real / "rebase-merge" / "git-rebase-todo").write_text("pick abc\nexec touch PWN\n")
    assert guard.look().running == (str(real / "rebase-merge" / "git-rebase-todo"),)


BELIEVED = (
    "AGENTS.md", "CLAUDE.md", ".vscode/tasks.json", ".envrc", ".github/workflows/ci.yml", ".husky/pre-commit", ".pre-commit-config.yaml",
    "sub/.mcp.json", "sub/.claude/settings.json", "new/deep/AGENTS.md",
)  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_there", [True, False])
def test_files_that_others_go_by_are_told_once(level: int, is_there: bool, workspace: Path) -> None:
    names = [name for name in BELIEVED if not is_there or not name.startswith("new")]
    for name in names if is_there else ("sub/x",):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("")
    write = "; ".join(f"mkdir -p $(dirname {name}); echo x >> {name}" for name in names)
    if is_there:
        wait_for_the_clock(workspace / names[-1])
    with sandbox_at(level, workspace) as sandbox:
        nothing, _ = asyncio.run(bash(sandbox, "echo x > plain.txt", workspace))
        ended, _ = asyncio.run(bash(sandbox, write, workspace))
        again, _ = asyncio.run(bash(sandbox, "echo x > plain.txt", workspace))
    assert (nothing.remark, nothing.notice, again.remark, again.notice) == ("", "", "", "")
    assert "agents go by such files" in ended.remark
    assert f"(+{len(names) - 5})" in ended.notice
    assert all((workspace / name).read_text() == "x\n" for name in names), "they are left as they are"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("is_there", [True, False])
def test_files_that_come_to_such_a_name_with_their_folder_are_told(level: int, is_there: bool, workspace: Path) -> None:
    """None of them is new, and a command may have prepared them where nobody goes by them."""
    names = ("plain/workflows/ci.yml", *([".github/workflows/ci.yml", "sub/keep"] if is_there else ["sub/keep"]))
    for name in names:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("")
    (workspace / "plain" / "AGENTS.md").write_text("")
    wait_for_the_clock(workspace / "plain" / "workflows")
    with sandbox_at(level, workspace) as sandbox:
        nothing, _ = asyncio.run(bash(sandbox, "echo x > sub/plain.txt; touch sub", workspace))
        ended, _ = asyncio.run(bash(sandbox, "rm -rf .github; mv plain .github; touch .github", workspace))
        again, _ = asyncio.run(bash(sandbox, "echo x > plain.txt", workspace))
    assert nothing.remark == ""
    assert ".github/workflows/ci.yml" in ended.remark
    assert ".github/AGENTS.md" in ended.remark
    assert again.remark == ""


def test_start_files_of_a_home_that_is_the_workspace(workspace: Path) -> None:
    """Those that are there are read-only where the sandbox can do that; new ones are told."""
    (workspace / "dotfiles").mkdir()
    for name, text in ((".bashrc", "a"), ("dotfiles/gitconfig", "b"), (".config/git/config", "c")):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    (workspace / ".gitconfig").symlink_to("dotfiles/gitconfig")
    ground = Ground([str(workspace)], homes=[str(workspace)], private=str(workspace.parent / "private"))
    drawn = ground.draw([])
    fixed = {os.path.relpath(path, workspace) for path in drawn.read_only}
    assert fixed == {".bashrc", "dotfiles/gitconfig", ".config/git/config"}
    assert {os.path.relpath(path, workspace) for path in drawn.pinned} == {"dotfiles", ".config", ".config/git"}
    guard = Guard(ground.writable, [], started=ground.started)
    (workspace / ".profile").write_text("touch PWN")
    assert str(workspace / ".profile") in guard.look().believed
    assert Ground([str(workspace)], homes=[str(workspace.parent)], private="").started == []


def wait_for_the_clock(path: Path) -> None:
    """Until the clock that files are stamped by is clearly past the last change of a file."""
    probe = path.parent / ".probe"
    while True:
        probe.write_text("")
        now = probe.lstat().st_ctime_ns
        probe.unlink()
        if now - path.lstat().st_ctime_ns > 50_000_000 and now - path.parent.lstat().st_ctime_ns < 50_000_000:
            break
    while True:
        (path.parent.parent / ".probe2").write_text("")
        now = (path.parent.parent / ".probe2").lstat().st_ctime_ns
        (path.parent.parent / ".probe2").unlink()
        if now - path.parent.lstat().st_ctime_ns > 50_000_000:
            return


@pytest.mark.parametrize("level", LEVELS)
def test_a_folder_of_hooks_that_is_a_link_is_put_back(level: int, workspace: Path) -> None:
    real = make_repository(workspace)
    (real / "hooks").rename(workspace / "githooks")
    (real / "hooks").symlink_to("../githooks")
    with sandbox_at(level, workspace) as sandbox:
        ended, _ = asyncio.run(bash(sandbox, "rm .git/hooks; mkdir .git/hooks; echo x > .git/hooks/pre-commit", workspace))
    assert os.readlink(real / "hooks") == "../githooks"
    assert os.listdir(workspace / "githooks") == []
    assert ".git/hooks" in ended.remark
