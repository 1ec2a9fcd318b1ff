"""Writing atomically: the old file or the new one, whole, at every moment and after every failure; and nothing else left."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.base import atomic, beneath
from dragoman.base.atomic import write_atomically
from dragoman.tools.worker import Stopped, in_thread, never_stop
from dragoman.tools.workspace import PathRefusal
from file_tools import Desk, done, refused

SYSCALLS = ["open", "write", "fsync", "close", "stat", "fstat", "replace", "unlink", "fchmod", "fchown", "mkdir", "access"]
SYSCALLS += [name for name in ("listxattr", "getxattr", "setxattr") if hasattr(os, name)]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "w")


class Faults:
    """Makes the nth system call of the write fail, whichever it is."""

    def __init__(self, patch: pytest.MonkeyPatch, fail_at: int, error: int = errno.EIO) -> None:
        self.count = 0
        self.failed = ""
        self._fail_at, self._error = fail_at, error
        for name in SYSCALLS:
            patch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            self.count += 1
            if self.count != self._fail_at:
                return real(*args, **keywords)
            self.failed = name
            if name == "close":
                real(*args)  # a close that reports a failure has closed nevertheless
            raise OSError(self._error, os.strerror(self._error))

        # `os.open in os.supports_dir_fd` and the like were asked when the modules were loaded.
        return call


def write(desk: Desk, name: str, data: bytes, *, stop: Callable[[], None] = never_stop) -> None:
    path = desk.workspace.resolve(name, writing=True)
    with desk.workspace.directory(os.path.dirname(path), create=True) as directory, desk.workspace.refusing(path):
        try:
            old = directory.stat(os.path.basename(path))
        except FileNotFoundError:
            old = None
        write_atomically(directory, os.path.basename(path), data, old, stop)


@pytest.mark.parametrize("by_descriptor", [True, False])
@pytest.mark.parametrize("old", [b"the old content", None], ids=["replace", "create"])
def test_each_system_call_failing_once_leaves_the_old_file_or_the_new(
    tmp_path: Path, by_descriptor: bool, old: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beneath, "BY_DESCRIPTOR", by_descriptor)
    failed: list[str] = []
    for fail_at in range(1, 200):
        desk = Desk(tmp_path / f"w{fail_at}")
        if old is not None:
            desk.plant("deep/a.txt", old)
        descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
        with pytest.MonkeyPatch.context() as patch:
            faults = Faults(patch, fail_at)
            try:
                write(desk, "deep/a.txt", b"the new content")
                has_succeeded = True
            except (OSError, PathRefusal):
                has_succeeded = False
        path = desk.root / "deep" / "a.txt"
        now = path.read_bytes() if path.exists() else None
        assert now == (b"the new content" if has_succeeded else old), faults.failed
        assert desk.leftovers() == [], faults.failed
        if descriptors:
            assert len(os.listdir("/proc/self/fd")) == descriptors, f"{faults.failed} leaks a descriptor"
        if not faults.failed:
            break
        failed.append(faults.failed)
    else:
        pytest.fail("the write never ended")
    assert {"open", "write", "fsync", "replace"} <= set(failed)


@given(fail_at=st.integers(1, 40), error=st.sampled_from([errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EACCES, errno.EROFS, errno.EMFILE]))
def test_a_tool_answers_every_failure_and_keeps_the_old_file(tmp_path_factory: pytest.TempPathFactory, fail_at: int, error: int) -> None:
    desk = Desk(tmp_path_factory.mktemp("faults"))
    desk.plant("a.txt", "old\n")
    desk.read("a.txt")

    async def run() -> Any:
        # Only the worker's calls may fail: the event loop is not what is tested.
        await in_thread(lambda stop: None)
        with pytest.MonkeyPatch.context() as patch:
            faults = Faults(patch, fail_at, error)
            output = await desk.tools["edit"].run({"file_path": "a.txt", "old_string": "old", "new_string": "new"}, lambda text: None)
            return output, faults.failed

    output, failed = asyncio.run(run())
    assert (desk.root / "a.txt").read_text() == ("old\n" if output.is_error else "new\n"), failed
    assert output.is_error == (output.changed == ())
    assert desk.leftovers() == []
    if output.is_error:
        assert output.error_type in {"disk", "permission", "io"}
        desk.read("a.txt")
    assert not desk.run("edit", file_path="a.txt", old_string="old" if output.is_error else "new", new_string="x").is_error


@pytest.mark.parametrize(("error", "words"), [(errno.ENOSPC, "No space left"), (errno.EROFS, "Read-only"), (errno.EDQUOT, "quota")])
def test_a_full_disk_is_said_to_be_full(desk: Desk, monkeypatch: pytest.MonkeyPatch, error: int, words: str) -> None:
    def fail(*args: Any) -> int:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(atomic, "_write", fail)
    message = refused(desk.run("write_file", file_path="a.txt", content="x"), "disk")
    assert words in message
    assert "a.txt" in message
    assert os.listdir(desk.root) == []


def test_a_real_limit_on_file_size_is_answered_and_leaves_nothing(desk: Desk) -> None:
    desk.plant("a.txt", "old")
    program = """
import asyncio, resource, sys
from dragoman.tools.edit import WriteFile
from dragoman.tools.seen import SeenFiles, state_of
from dragoman.tools.workspace import Workspace
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
seen = SeenFiles()
seen.note(sys.argv[1] + "/a.txt", state_of(b"old"))
tool = WriteFile(Workspace(sys.argv[1]), seen)
output = asyncio.run(tool.run({"file_path": "a.txt", "content": "x" * 3_000_000}, print))
print(output.is_error, output.error_type)
"""
    ran = subprocess.run([sys.executable, "-c", program, str(desk.root)], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "True disk\n"
    assert os.listdir(desk.root) == ["a.txt"]
    assert (desk.root / "a.txt").read_text() == "old"


def test_mode_and_owner_are_kept(desk: Desk) -> None:
    path = desk.plant("run.sh", "#!/bin/sh\n")
    path.chmod(0o751)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    write(desk, "run.sh", b"#!/bin/bash\n")
    after = path.stat()
    assert stat.S_IMODE(after.st_mode) == 0o751
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


def test_set_user_id_does_not_survive_new_content(desk: Desk) -> None:
    path = desk.plant("tool", "x")
    path.chmod(0o4755)
    write(desk, "tool", b"y")
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_new_file_has_the_mode_the_umask_gives(desk: Desk) -> None:
    before = os.umask(0o027)
    try:
        write(desk, "new/a.txt", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((desk.root / "new" / "a.txt").stat().st_mode) == 0o640


def test_a_file_that_would_change_hands_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = desk.plant("a.txt", "old")
    owner = path.stat()

    class Foreign:
        """The status of a file of somebody else's."""

        st_uid, st_gid, st_mode, st_size = owner.st_uid + 1, owner.st_gid, owner.st_mode, owner.st_size

    def deny(*args: Any) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", deny)
    with desk.workspace.directory(str(desk.root)) as directory, pytest.raises(PathRefusal) as caught, desk.workspace.refusing(str(path)):
        write_atomically(directory, "a.txt", b"new", Foreign(), never_stop)  # type: ignore[arg-type]
    assert caught.value.error_type == "permission"
    assert "change hands" in caught.value.message
    assert path.read_text() == "old"
    assert desk.leftovers() == []


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes on this system")
def test_extended_attributes_are_kept_where_the_system_has_them(desk: Desk) -> None:
    path = desk.plant("a.txt", "old")
    try:
        os.setxattr(path, "user.note", b"mine")
    except OSError:
        pytest.skip("this file system keeps no extended attributes")
    write(desk, "a.txt", b"new")
    assert os.getxattr(path, "user.note") == b"mine"


def test_a_change_during_the_write_is_not_overwritten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = desk.plant("a.txt", "old\n")
    desk.read("a.txt")
    real = atomic._write

    def interrupt(*args: Any) -> None:
        real(*args)
        desk.plant("a.txt", "theirs\n")

    monkeypatch.setattr(atomic, "_write", interrupt)
    refused(desk.run("write_file", file_path="a.txt", content="mine\n"), "stale")
    assert path.read_text() == "theirs\n"
    assert desk.leftovers() == []


def test_a_file_that_appears_during_the_write_is_not_overwritten(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    real = atomic._write

    def interrupt(*args: Any) -> None:
        real(*args)
        desk.plant("new.txt", "theirs\n")

    monkeypatch.setattr(atomic, "_write", interrupt)
    refused(desk.run("write_file", file_path="new.txt", content="mine\n"), "stale")
    assert (desk.root / "new.txt").read_text() == "theirs\n"
    assert desk.leftovers() == []


# --- cancel --------------------------------------------------------------------------------------------------------------


def test_a_stop_before_the_last_step_leaves_the_old_file(desk: Desk) -> None:
    path = desk.plant("a.txt", b"old")
    for allowed in range(20):
        left = [allowed]

        def stop(left: list[int] = left) -> None:
            if left[0] == 0:
                raise Stopped
            left[0] -= 1

        try:
            write(desk, "a.txt", b"new" * 1_000_000, stop=stop)
        except Stopped:
            assert path.read_bytes() == b"old"
            assert desk.leftovers() == []
        else:
            assert path.read_bytes() == b"new" * 1_000_000
            break
    else:
        pytest.fail("the write never went through")


def test_a_cancel_ends_the_write_and_leaves_nothing(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = desk.plant("a.txt", "old\n")
    desk.read("a.txt")
    is_writing, may_go_on = threading.Event(), threading.Event()
    real = atomic._write

    def hold(*args: Any) -> None:
        real(*args)
        is_writing.set()
        assert may_go_on.wait(60)

    monkeypatch.setattr(atomic, "_write", hold)

    async def cancel_midway() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(desk.tools["write_file"].run({"file_path": "a.txt", "content": "new\n"}, lambda text: None))
        await loop.run_in_executor(None, is_writing.wait, 60)
        assert desk.leftovers() != []
        task.cancel()
        loop.call_later(0.05, may_go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert desk.leftovers() == []  # it was over before the cancel went on its way

    asyncio.run(cancel_midway())
    assert path.read_text() == "old\n"
    done(desk.run("edit", file_path="a.txt", old_string="old", new_string="new"))


def test_a_thread_that_hangs_does_not_hold_up_a_cancel() -> None:
    release = threading.Event()

    async def cancel_it() -> None:
        loop = asyncio.get_running_loop()
        started = threading.Event()
        task = asyncio.create_task(in_thread(lambda stop: (started.set(), release.wait(300))))
        await loop.run_in_executor(None, started.wait, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()

    asyncio.run(asyncio.wait_for(cancel_it(), 120))  # the thread itself waits for longer


def test_work_still_waiting_for_a_thread_is_not_begun_after_a_cancel() -> None:
    ran: list[bool] = []

    async def cancel_it() -> None:
        loop = asyncio.get_running_loop()
        release = threading.Event()
        busy = [loop.run_in_executor(None, release.wait, 60) for _ in range(64)]
        task = asyncio.create_task(in_thread(lambda stop: ran.append(True)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        await asyncio.gather(*busy)
        await loop.run_in_executor(None, int)

    asyncio.run(cancel_it())
    assert ran == []
