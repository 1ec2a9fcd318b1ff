"""Work that git does not hold, around commands: kept before they run, and what they changed is undone step by step."""

from __future__ import annotations

import asyncio
import os
import random
import stat
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from dragoman.loop import work_tree
from dragoman.loop.history import History
from dragoman.loop.kept_work import KeptWork
from dragoman.policy.discarding import find_discards
from dragoman.sessions.blobs import FileBlobs
from dragoman.sessions.bounds import UndoBounds
from dragoman.sessions.checkpoints import Checkpoints
from dragoman.sessions.restore import RestoreResult, UndoRefused, restore
from dragoman.sessions.undo import changes_after, plan_undo
from dragoman.testing.journal import MemoryJournal
from dragoman.values.messages import ToolCall, tool_result
from dragoman.values.record import FilesKept

SEQUENCES = 400 if os.environ.get("DRAGOMAN_LONG") else 12
STEPS = 9
NAMES = ["a.txt", "b.txt", "src/c.py", "src/d.py", "src/deep/e.py", "new.txt", "src/new.py", "out/log.txt", "with space.txt", "ü.txt"]
COMMANDS = [
    "git checkout -q -- .",
    "git checkout -q .",
    "git reset -q --hard",
    "git reset -q --hard HEAD~1",
    "git clean -fdq",
    "git clean -fdqx",
    "git restore . && git clean -fq src",
    "git restore --staged . ; git restore .",
    "git stash -q",
    "git stash -q -u && git stash drop -q",
    "git stash -q -u ; git stash pop -q",
    "git add -A",
    "git add -A && git commit -qm more",
    "git commit -qam more",
    "git switch -q -f side",
    "git switch -q --discard-changes main",
    "git checkout -q -f side",
    "git checkout -q HEAD~1 -- a.txt",
    "git rm -qf a.txt",
    "git mv -f b.txt moved.txt",
    "git add -A && git reset -q --hard && git reflog expire --expire=now --all && git gc -q --prune=now",
    "rm -rf src",
    "rm -f new.txt a.txt out/log.txt",
    "mv new.txt src/c.py",
    "rm -rf src && echo file > src",
    "echo more >> a.txt; echo more >> 'with space.txt'",
    "printf same > b.txt",
    "chmod 755 a.txt src/c.py",
    "sed -i s/1/2/ src/*.py",
    "mkdir -p out/deeper && echo x > out/deeper/x && cp a.txt out/deeper/",
    "ln -sf a.txt link.txt",
    "true",
]
ENV = {
    **os.environ,
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
Files = dict[str, tuple[bytes, int]]


def shell(root: Path, line: str) -> None:
    subprocess.run(["bash", "-c", line], cwd=root, env=ENV, capture_output=True, check=False, timeout=60)


def repository(root: Path) -> Path:
    root = Path(os.path.realpath(root))
    (root / "src" / "deep").mkdir(parents=True)
    shell(root, "git init -q -b main .")
    for number, name in enumerate(NAMES[:5]):
        (root / name).write_text(f"first {number}\n")
    (root / ".gitignore").write_text("*.o\nbuild/\n")
    shell(root, "git add -A && git commit -qm one && git branch side && echo 1 >> a.txt && git commit -qam two")
    shell(root, "git switch -q side && echo side >> src/c.py && git commit -qam three && git switch -q main")
    return root


class Desk:
    """A repository, and a record of what calls did to its files."""

    def __init__(self, root: Path, blobs: Path) -> None:
        self.root = root
        self.history = History(MemoryJournal())
        self.blobs = FileBlobs(blobs)
        self.faults: list[str] = []
        self.work = KeptWork(lambda: [str(root)], lambda path: False, self.blobs, tell=self.faults.append)
        self.paths: tuple[str, ...] = ()
        self.checkpoints = Checkpoints(
            self.history,
            self.blobs,
            lambda call, arguments: self.paths,
            watch=lambda call: self.work if call.name == "run_shell" else None,
            noted=self.work.note_edits,
        )
        self._calls = 0

    def run(self, line: str) -> None:
        asyncio.run(self._call("run_shell", lambda: shell(self.root, line)))

    def edit(self, name: str, data: bytes) -> None:
        self.paths = (str(self.root / name),)
        asyncio.run(self._call("write_file", lambda: put(self.root / name, data)))
        self.paths = ()

    async def _call(self, tool: str, do: object) -> None:
        self._calls += 1
        call = ToolCall(f"call-{self._calls}", tool)
        self.checkpoints.start_tool(call)
        await self.checkpoints.sync()
        await asyncio.to_thread(do)  # type: ignore[arg-type]
        self.checkpoints.finish_tool(tool_result(call, "done"))
        await self.checkpoints.sync()
        await self.checkpoints.settle()

    def undo(self, after: int, *, force: bool = False) -> RestoreResult:
        bounds = UndoBounds((str(self.root),), lambda path: False)
        plan = plan_undo(changes_after(self.history.entries, after), self.blobs, bounds)
        restored = restore(plan, force=force)
        self.history.restore_files(plan.changes, restored.files)
        return restored


def put(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError:
        pass  # a file is where a folder should be, or the other way round


def files_in(root: Path) -> Files:
    """Every regular file that is not ignored, byte for byte."""
    found: Files = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each not in (".git", "build")]
        for name in names:
            path = Path(folder) / name
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and not name.endswith(".o"):
                found[str(path.relative_to(root))] = (path.read_bytes(), status.st_mode)
    return found


@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_every_step_is_undone_byte_for_byte_or_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    desk = Desk(repository(tmp_path / "work"), tmp_path / "blobs")
    steps: list[tuple[int, Files, Files, str]] = []
    for number in range(STEPS):
        what = chance.random()
        name, data = chance.choice(NAMES), f"{chance.choice('12')} of {number} by {seed}\n".encode() * chance.randrange(4)
        if what < 0.3:
            put(desk.root / name, data)
            continue
        mark, before = len(desk.history.entries), files_in(desk.root)
        line = chance.choice(COMMANDS) if what < 0.85 else f"edit {name}"
        if what < 0.85:
            desk.run(line)
        else:
            desk.edit(name, data)
        steps.append((mark, before, files_in(desk.root), line))
    for mark, before, after, line in reversed(steps):
        now = files_in(desk.root)
        changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
        theirs = [name for name in changed if now.get(name) not in (after.get(name), before.get(name))]
        if refused := try_undo(desk, mark):
            assert all(conflict.reason for conflict in refused.conflicts)
            assert files_in(desk.root) == now, "what is refused has touched nothing"
            assert theirs or is_hindered(desk.root, changed, refused), (line, refused.conflicts)
            return
        assert theirs == [], "what the user changed since was overwritten"
        wanted = {name: content for name, content in now.items() if name not in changed}
        wanted |= {name: before[name] for name in changed if name in before}
        assert files_in(desk.root) == wanted, line
    assert desk.faults == []


def try_undo(desk: Desk, mark: int) -> UndoRefused | None:
    try:
        desk.undo(mark)
    except UndoRefused as refused:
        return refused
    return None


def is_hindered(root: Path, changed: list[str], refused: UndoRefused) -> bool:
    """Whether a file cannot be put back for another reason: a link, or a file or folder in its way."""
    if any(conflict.path.endswith("/link.txt") for conflict in refused.conflicts):
        return True  # of links nothing is kept, and they are named
    paths = [root / name for name in changed]
    return any(path.is_dir() or path.is_symlink() or any(each.is_file() for each in path.parents) for path in paths)


def test_the_copies_and_the_entry_are_on_disk_before_the_command_runs(tmp_path: Path) -> None:
    desk = Desk(repository(tmp_path / "work"), tmp_path / "blobs")
    put(desk.root / "new.txt", b"never added")
    put(desk.root / "b.txt", b"uncommitted")
    before = files_in(desk.root)
    asyncio.run(begin_only(desk))
    shell(desk.root, "git reset -q --hard; git clean -fdq; rm -rf src")
    [kept] = [entry for entry in desk.history.entries if isinstance(entry, FilesKept)]
    assert {os.path.basename(file.path) for file in kept.files} == {"new.txt", "b.txt"}
    for file in kept.files:
        assert (tmp_path / "blobs" / file.after).read_bytes() == before[os.path.basename(file.path)][0]
    # Whoever goes on after a kill finds no end of the call: what was kept is named, refused, and given back by force.
    later = Desk(desk.root, tmp_path / "blobs")
    later.history = History(MemoryJournal(), entries=desk.history.entries)
    assert try_undo(later, 0) is not None
    later.undo(0, force=True)
    assert {name: files_in(desk.root)[name] for name in ("new.txt", "b.txt")} == {name: before[name] for name in ("new.txt", "b.txt")}


async def begin_only(desk: Desk) -> None:
    desk.checkpoints.start_tool(ToolCall("call-1", "run_shell"))
    await desk.checkpoints.sync()


def test_a_command_that_goes_on_is_undone_by_force_alone(tmp_path: Path) -> None:
    desk = Desk(repository(tmp_path / "work"), tmp_path / "blobs")
    put(desk.root / "new.txt", b"first")
    goes_on = [False]
    desk.work = KeptWork(lambda: [str(desk.root)], lambda path: False, desk.blobs, goes_on=lambda: goes_on[0])
    desk.run("true")
    goes_on[0] = True
    desk.run("true")  # it goes on after its call
    put(desk.root / "new.txt", b"by the command, or by the user")
    mark = len(desk.history.entries)
    desk.history.change_files("", desk.work.beside(), unsure=True)
    refused = try_undo(desk, mark)
    assert refused is not None
    assert "background" in str(refused)
    desk.undo(mark, force=True)
    assert (desk.root / "new.txt").read_bytes() == b"first"


def test_what_lies_past_the_bounds_is_told_once_and_named_as_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_tree, "MAX_FILES", 2)
    desk = Desk(repository(tmp_path / "work"), tmp_path / "blobs")
    for number in range(4):
        put(desk.root / f"new-{number}.txt", b"never added")
    desk.run("true")
    desk.run("true")
    assert len(desk.faults) == 1
    assert "new-2.txt" in desk.faults[0]
    lost = desk.work.lost_by(find_discards("git clean -fd", str(desk.root)), str(desk.root))
    assert lost is not None
    assert lost.names == ("new-0.txt", "new-1.txt", "new-2.txt", "new-3.txt")
    assert "new-2.txt" in lost.not_kept


def test_of_files_hidden_from_commands_no_copies_and_no_hashes_are_kept(tmp_path: Path) -> None:
    desk = Desk(repository(tmp_path / "work"), tmp_path / "blobs")
    hidden = desk.root / "secret.env"
    desk.work = KeptWork(
        lambda: [str(desk.root)],
        lambda path: False,
        desk.blobs,
        refuse_copy=lambda path, data: "hidden" if path == str(hidden) else "",
        tell=desk.faults.append,
    )
    put(hidden, b"a password")
    put(desk.root / "plain.txt", b"shown")
    desk.run("echo changed > plain.txt")
    desk.run("echo another password > secret.env")
    held = b"".join(path.read_bytes() for path in (tmp_path / "blobs").rglob("*") if path.is_file())
    assert b"shown" in held
    assert b"password" not in held
    recorded = str(desk.history.entries)
    assert str(hidden) in recorded, "that it changed is known"
    assert sha256(b"a password").hexdigest() not in recorded
    assert sha256(b"another password\n").hexdigest() not in recorded
    assert desk.faults == []
    lost = desk.work.lost_by(find_discards("rm secret.env", str(desk.root)), str(desk.root))
    assert lost is not None
    assert lost.names == ("secret.env",)
    assert "hidden from commands" in lost.not_kept


def test_a_filter_of_the_repository_never_runs_and_what_it_hides_is_kept(tmp_path: Path) -> None:
    root = repository(tmp_path / "work")
    ran = tmp_path / "ran"
    for name in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor", "diff.external"):
        shell(root, f"git config {name} 'touch {ran}; tr a-z n-za-m'")
    put(root / ".gitattributes", b"*.txt filter=evil\n")
    shell(root, "git add -A && git commit -qm filtered")
    put(root / "a.txt", b"as it stands here\n")
    shell(root, "git add -A && git commit -qm again")
    ran.unlink()
    desk = Desk(root, tmp_path / "blobs")
    before = files_in(root)
    desk.run("printf x > a.txt; rm b.txt")
    assert not ran.exists()
    desk.undo(0)
    assert files_in(root) == before
    assert not ran.exists()


def test_pipes_links_and_prepared_repositories_are_not_followed(tmp_path: Path) -> None:
    root = repository(tmp_path / "work")
    outside = tmp_path / "outside"
    put(outside / "secret.txt", b"the user's")
    os.mkfifo(root / "pipe")
    (root / "away").symlink_to(outside)
    (root / "hostile").mkdir()
    (root / "hostile" / ".git").write_text(f"gitdir: {outside}\n")
    (root / "fifo-repository" / ".git").mkdir(parents=True)
    for name in ("HEAD", "index", "config", "packed-refs"):
        os.mkfifo(root / "fifo-repository" / ".git" / name)
    put(root / "fifo-repository" / "work.txt", b"kept")
    desk = Desk(root, tmp_path / "blobs")
    desk.run("true")
    [kept] = [entry for entry in desk.history.entries if isinstance(entry, FilesKept)]
    names = {os.path.relpath(file.path, root) for file in kept.files}
    assert "fifo-repository/work.txt" in names
    assert not any("secret" in name or name == "pipe" for name in names)


def test_nothing_is_read_or_listed_again_that_has_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "work")
    for path in (*root.rglob("*"), root):
        os.utime(path, follow_symlinks=False)
    tree = work_tree.WorkTree(lambda: [str(root)], lambda path: False, lambda contents: True)
    while tree._unsettled or not tree._has_looked or any(not folder.times for folder in tree._folders.values()):
        tree.look()  # what has just changed is looked at again
    read: list[object] = []
    monkeypatch.setattr(work_tree, "read_file_states", lambda folder, names: read.append(folder) or iter(()))
    monkeypatch.setattr(os, "scandir", read.append)
    assert tree.look() == []
    assert tree.look(wholly=False) == []
    assert read == []


@pytest.mark.parametrize("wholly", [True, False])
def test_a_look_with_what_is_known_is_the_same_as_a_fresh_one(tmp_path: Path, *, wholly: bool) -> None:
    root, chance = repository(tmp_path / "work"), random.Random(wholly)
    tree = work_tree.WorkTree(lambda: [str(root)], lambda path: False, lambda contents: True)
    tree.look()
    for _ in range(60):
        path = root / chance.choice([*NAMES, ".gitignore", "build/x", "sub/.gitignore", "sub/kept.txt", "sub/x.log"])
        match chance.randrange(6):
            case 0 if path.is_file():
                path.unlink()
            case 1 if path.is_file():
                path.chmod(chance.choice([0o644, 0o755]))
            case 2:
                shell(root, chance.choice(COMMANDS))
            case _:
                put(path, chance.choice([b"", b"a\n", b"*.txt\n", b"*.log\n!x.log\n"]))
        tree.look(wholly=wholly)
        fresh = work_tree.WorkTree(lambda: [str(root)], lambda path: False, lambda contents: True)
        fresh.look()
        assert known(tree) == known(fresh)
        fresh.close()
    tree.close()


def known(tree: work_tree.WorkTree) -> dict[str, tuple[int, bool, bytes]]:
    return {path: (seen.mode, seen.is_held, Path(path).read_bytes()) for path, seen in tree.files.items() if not os.path.islink(path)} | {
        path: (seen.mode, seen.is_held, b"") for path, seen in tree.files.items() if os.path.islink(path)
    }
