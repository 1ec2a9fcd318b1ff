"""The workspace of an attempt: a copy of its own, and what changed in it.

Copies, diffs and clean-up follow no link: a link is copied as a link. The changes are found by a git folder of our own beside the copy,
so nothing that the workspace or the agent configured for git has a say in it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from dragoman.base.beneath import is_inside, open_directory
from dragoman.base.lock import hold
from dragoman.base.places import find_places
from dragoman.base.private import make_directory, write_whole
from dragoman.fleet.folder import is_fleet
from dragoman.fleet.task import GitSource, Task
from dragoman.policy.sandbox.cache_removal import remove_tree
from dragoman.policy.sandbox.caches import forget_caches
from dragoman.sessions.projects import project_name
from dragoman.values.errors import InputError
from dragoman.words import say

COPY = "work"
"""The copy in the folder of its attempt."""
GIT_S = 1_800.0
SNAPSHOT_S = 600.0
MOST_DIFF_BYTES = 4_000_000
_READ_BY_GIT = (".gitignore", ".gitattributes")
_FICLONE = 0x40049409
_PIECE_BYTES = 1 << 20
_HELD = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_READ = os.O_RDONLY | _HELD | getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | _HELD | getattr(os, "O_DIRECTORY", 0)
_DEEPEST = 400
_GIT = (
    *("git", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never"),
    *("-c", "submodule.recurse=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "advice.addEmbeddedRepo=false"),
)


def make_copy(task: Task, copy: str, sources: str, left_out: Sequence[str] = ()) -> None:
    """Make the folder `copy`, with what the task's workspace holds and its files. `sources`: where repositories are kept, fetched once.
    `left_out`: real paths that are not copied.

    Blocks. Raises InputError where the workspace cannot be had, OSError where the copy cannot be written."""
    make_directory(os.path.dirname(copy))
    match task.workspace:
        case None:
            os.mkdir(copy, 0o700)
        case GitSource() as source:
            copy_tree(fetch_revision(source, sources), copy)
        case str() as path if os.path.isdir(path):
            copy_tree(path, copy, left_out)
        case str() as path:
            os.mkdir(copy, 0o700)
            _unpack(path, copy)
    write_files(copy, task.files)


def remove_place(scratch: str, name: str) -> None:
    """Remove the folder of an attempt, and what its commands kept elsewhere. No link is followed."""
    copy, places = os.path.join(scratch, name, COPY), find_places()
    remove_tree(scratch, name)
    forget_caches(places.command_caches, copy)
    remove_tree(places.temporary, project_name(copy))


def write_files(copy: str, files: Mapping[str, str]) -> None:
    """Write these files into the copy; a link on the way, or in a file's place, raises InputError."""
    for path, text in files.items():
        *parts, name = path.split("/")
        try:
            with open_directory(os.path.join(copy, *parts), create=True) as directory:
                with suppress(FileNotFoundError):
                    directory.unlink(name)
                descriptor = directory.create(name, 0o777 if text.startswith("#!") else 0o666)
                try:
                    write_whole(descriptor, text.encode("utf-8", "surrogatepass"))
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise InputError(say("fleet.file_not_written", path=path, reason=error.strerror or error)) from error


# --- copying ------------------------------------------------------------------------------------------------------------------------


def copy_tree(source: str, copy: str, left_out: Sequence[str] = ()) -> None:
    """Copy a folder: by reference where the file system can, else by its bytes. Pipes, sockets, devices and fleets are left out, and so is
    what has one of these real paths."""
    os.mkdir(copy, 0o700)
    ours, theirs = os.open(source, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), os.open(copy, _FOLDER)
    try:
        _copy_folder(ours, theirs, 0, paths_within(source, left_out))
    finally:
        os.close(ours)
        os.close(theirs)


def paths_within(source: str, paths: Sequence[str]) -> frozenset[str]:
    """Those of these real paths that lie in a folder, as they are called from there."""
    real = os.path.realpath(source)
    return frozenset(os.path.relpath(path, real) for path in paths if path != real and is_inside(path, real))


def _copy_folder(source: int, copy: int, depth: int, left_out: frozenset[str], path: str = "") -> None:
    """`left_out`: paths from the top of the workspace; `path`: of this folder."""
    if depth > _DEEPEST:
        raise InputError(say("fleet.too_deep", most=_DEEPEST))
    with os.scandir(source) as entries:
        for entry in entries:
            name, status = entry.name, entry.stat(follow_symlinks=False)
            inside = os.path.join(path, name) if left_out else ""
            if inside in left_out:
                continue
            if stat.S_ISLNK(status.st_mode):
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=copy)
            elif stat.S_ISDIR(status.st_mode):
                if is_fleet(name, source):
                    continue
                os.mkdir(name, 0o700, dir_fd=copy)
                inner, made = os.open(name, _FOLDER, dir_fd=source), os.open(name, _FOLDER, dir_fd=copy)
                try:
                    _copy_folder(inner, made, depth + 1, left_out, inside)
                    os.fchmod(made, stat.S_IMODE(status.st_mode) & 0o777 | 0o700)
                finally:
                    os.close(inner)
                    os.close(made)
            elif stat.S_ISREG(status.st_mode):
                _copy_file(source, copy, name)


def _copy_file(source: int, copy: int, name: str) -> None:
    ours = os.open(name, _READ, dir_fd=source)
    try:
        status = os.fstat(ours)
        if not stat.S_ISREG(status.st_mode):  # it was replaced just now
            return
        theirs = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=copy)
        try:
            if status.st_size and not _reflink(ours, theirs):
                while os.sendfile(theirs, ours, None, _PIECE_BYTES) if sys.platform == "linux" else _pass_piece(ours, theirs):
                    pass
            os.fchmod(theirs, stat.S_IMODE(status.st_mode) & 0o777)
            os.utime(theirs, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(theirs)
    finally:
        os.close(ours)


def _reflink(source: int, copy: int) -> bool:
    if sys.platform != "linux":
        return False
    import fcntl

    try:
        fcntl.ioctl(copy, _FICLONE, source)
    except OSError:
        return False
    return True


def _pass_piece(source: int, copy: int) -> int:
    piece = os.read(source, _PIECE_BYTES)
    write_whole(copy, piece)
    return len(piece)


def _unpack(path: str, copy: str) -> None:
    """Nothing of an archive lands outside the copy."""
    from dragoman.fleet.archives import unpack

    try:
        unpack(path, copy)
    except ValueError as error:
        raise InputError(say("fleet.bad_archive", path=path, reason=error)) from error


# --- repositories -------------------------------------------------------------------------------------------------------------------


def fetch_revision(source: GitSource, sources: str) -> str:
    """A folder with this revision checked out. It is made once, whoever comes first."""
    name = hashlib.sha256(f"{source.git}\0{source.rev}".encode()).hexdigest()[:24]
    tree = os.path.join(sources, name)
    make_directory(sources)
    while not os.path.isdir(tree):
        try:
            with hold(tree):
                if not os.path.isdir(tree):
                    _clone(source, tree)
        except BlockingIOError:  # another worker is fetching it, for longer than a lock waits
            continue
    return tree


def _clone(source: GitSource, tree: str) -> None:
    aside = f"{tree}.new"
    remove_tree(os.path.dirname(aside), os.path.basename(aside))
    run_git(["clone", "--quiet", "--no-checkout", "--no-hardlinks", "--", source.git, aside])
    revision = source.rev
    try:
        run_git(["-C", aside, "checkout", "--quiet", "--detach", revision, "--"])
    except InputError:  # a commit that no branch leads to, or a branch that is not the main one
        run_git(["-C", aside, "fetch", "--quiet", "origin", revision])
        run_git(["-C", aside, "checkout", "--quiet", "--detach", "FETCH_HEAD", "--"])
    os.rename(aside, tree)


def find_repository(url: str) -> None:
    """Raises InputError where no repository answers at this address."""
    run_git(["ls-remote", "--quiet", "--", url, "HEAD"], timeout_s=60.0)


def run_git(
    arguments: Sequence[str],
    env: Mapping[str, str] | None = None,
    timeout_s: float = GIT_S,
    given: bytes = b"",
    *,
    also_fine: int = 0,
    most: int = 0,
) -> bytes:
    """What git prints; with `most`, no more than so many bytes of it. Raises InputError with its complaint, unless its exit code is 0 or
    `also_fine`."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name == "GIT_SSH_COMMAND"}
    around |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(env or {})}
    try:
        done = (_run_in_part if most else _run_whole)([*_GIT, *arguments], given, around, timeout_s, most)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(say("fleet.git_failed", reason=error)) from error
    if done.returncode not in (0, also_fine):
        complaint = done.stderr.decode("utf-8", "replace").strip() or f"{arguments[0]}: {done.returncode}"
        raise InputError(say("fleet.git_failed", reason=complaint[-500:]))
    return done.stdout


def _run_whole(words: list[str], given: bytes, env: Mapping[str, str], timeout_s: float, _: int) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, capture_output=True, input=given, env=env, timeout=timeout_s, check=False)


def _run_in_part(words: list[str], _: bytes, env: Mapping[str, str], timeout_s: float, most: int) -> subprocess.CompletedProcess[bytes]:
    """What an agent has made may be of any size: what is more than `most` is never in memory."""
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as process:
        timer = threading.Timer(timeout_s, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            data = process.stdout.read(most)
            if is_cut := len(data) == most:
                process.kill()
            process.wait()
        finally:
            timer.cancel()
    return subprocess.CompletedProcess(words, 0 if is_cut else process.returncode, data, b"")


class Snapshot:
    """The state of a copy before the work, in a git folder of our own: it finds what changed."""

    def __init__(self, copy: str, folder: str) -> None:
        """Blocks while every file is read. Raises InputError where git fails or is not there."""
        self._copy, self._folder = copy, folder
        for each in ("objects", "refs"):
            make_directory(os.path.join(folder, each))
        for name, text in (("HEAD", "ref: refs/heads/none\n"), ("config", "[core]\n\trepositoryformatversion = 0\n\tbare = false\n")):
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(text)
        self._tree = self._write_tree()

    def diff(self, most: int = MOST_DIFF_BYTES) -> bytes:
        """What changed since, as a patch: no more than so many bytes of it. Raises InputError."""
        now = self._write_tree()
        if now == self._tree:
            return b""
        return self._git("diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", self._tree, now, most=most)

    def _write_tree(self) -> str:
        """The tree of the copy as it is now. Repositories inside it are taken as what they are on disk, folders of files: git would run
        their own configuration to find out whether they have changed."""
        inner = self._inner_repositories()
        trees = {path: self._tree_of(path, [each for each in inner if each != path]) for path in ("", *inner)}
        if not inner:
            return trees[""]
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(self._folder, "together"))
        for path, tree in trees.items():
            self._git("read-tree", *([f"--prefix={path}/"] if path else []), tree, index="together")
        return self._git("write-tree", index="together").decode().strip()

    def _tree_of(self, path: str, left_out: Sequence[str]) -> str:
        """The tree of a folder of the copy, without what another tree has."""
        index = f"index-{hashlib.sha256(os.fsencode(path)).hexdigest()[:24]}"
        prefix = f"{path}/" if path else ""
        excluded = [f":(exclude,literal){each[len(prefix) :]}" for each in left_out if each.startswith(prefix)]
        named = ["--pathspec-from-file=-", "--pathspec-file-nul"] if excluded else ["--", "."]
        wanted = b"\0".join(os.fsencode(each) for each in (":/", *excluded)) if excluded else b""
        self._git("add", "--all", *named, index=index, within=path, given=wanted)
        return self._git("write-tree", index=index).decode().strip()

    def _inner_repositories(self) -> list[str]:
        """The folders below the copy that hold a `.git`, whatever that is, but those that are to be ignored: outer ones first."""
        if not (found := [path for path in _folders_with_git(self._copy) if path]):
            return []
        given = b"".join(os.fsencode(f"{path}\0") for path in found)
        ignored = self._git("check-ignore", "--no-index", "-z", "--stdin", given=given, also_fine=1)
        return sorted(set(found) - {os.fsdecode(path) for path in ignored.split(b"\0")})

    def _git(self, *arguments: str, index: str = "index", within: str = "", given: bytes = b"", also_fine: int = 0, most: int = 0) -> bytes:
        own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": os.path.dirname(self._copy)}
        own["GIT_INDEX_FILE"] = os.path.join(self._folder, index)
        tree = os.path.join(self._copy, within) if within else self._copy
        words = [f"--git-dir={self._folder}", f"--work-tree={tree}", "-C", tree, *arguments]
        return run_git(words, own, SNAPSHOT_S, given, also_fine=also_fine, most=most)


def _folders_with_git(copy: str) -> Iterator[str]:
    """Paths in the copy, found without following a link. Pipes that git would read, and wait at for good, are removed on the way."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(os.path.join(copy, folder)) as found:
                entries = list(found)
        except OSError:  # closed to us: so it is to git
            continue
        if any(entry.name.lower() == ".git" for entry in entries):
            yield folder
        for name in (entry.name for entry in entries if entry.name.lower() in _READ_BY_GIT and _is_special(entry)):
            with open_directory(os.path.join(copy, folder)) as directory:
                directory.unlink(name)
        inner = (entry.name for entry in entries if entry.name.lower() != ".git" and entry.is_dir(follow_symlinks=False))
        waiting += [os.path.join(folder, name) for name in inner]


def _is_special(entry: os.DirEntry[str]) -> bool:
    """Whether this is a pipe, a socket or a device."""
    mode = entry.stat(follow_symlinks=False).st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))
