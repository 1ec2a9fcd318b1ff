"""One holder at a time, and a lock that ends with its process."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dragoman.base import lock as locks
from dragoman.base.lock import Locked, holder_of, lock


def test_a_second_holder_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("")
    with path.open() as first, path.open() as second:
        assert lock(first.fileno())
        with pytest.raises(Locked):
            lock(second.fileno(), ())
        if os.path.exists("/proc/locks"):
            assert holder_of(second.fileno()) == os.getpid()
        first.close()
        assert lock(second.fileno(), ())


def test_a_file_system_without_locks_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(descriptor: int, how: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(locks.fcntl, "flock", no_locks)
    (tmp_path / "a").write_text("")
    with (tmp_path / "a").open() as file:
        code = errno.ENOLCK
        assert not lock(file.fileno())
        code = errno.EIO
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            lock(file.fileno())
