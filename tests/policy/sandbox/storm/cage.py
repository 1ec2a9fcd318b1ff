"""Starts a program where nothing can be written but decoys: `cage.py DECOYS WITNESS… -- PROGRAM ARGUMENT…`, as root or as anybody.

The code that storms are run against may really delete files. So it runs in namespaces of its own, in which every mount is read-only
except fresh file systems in memory: over the folder DECOYS, /tmp, /var/tmp, /run and /dev. This is proved, by looking at every mount and
by trying to write beside each WITNESS, before the program is started; where it cannot be shown, nothing is started.

Standard library only, and nothing of Dragoman's: what is judged does not hold its own judge. Not covered: /proc, which boundaries within
need whole. Root can write the kernel's settings there, so no step names a path in it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import sys

REFUSED = 75
"""How it ends where no such place can be made."""
_SIGCHLD = 17
_NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_PIDS, _NEW_NETWORK = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_NOSUID, _NODEV, _BIND, _REC, _PRIVATE = 2, 4, 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = 442, -100, 0x8000, 1
_CLONE = {"x86_64": 56, "aarch64": 220}
_CAPBSET_DROP, _SET_PDEATHSIG = 24, 1
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_DROPPED = {"CAP_SYS_MODULE": 16, "CAP_SYS_RAWIO": 17, "CAP_SYS_ADMIN": 21, "CAP_SYS_BOOT": 22, "CAP_SYS_TIME": 25, "CAP_MKNOD": 27}
"""With these, root could make what is read-only writable again, or write to a disk beneath it."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_IN_MEMORY = ("/tmp", "/var/tmp", "/run")
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class NotHeld(Exception):
    """The place is not what it must be: nothing may be started in it."""


def main() -> None:
    at = sys.argv.index("--")
    (decoys, *witnesses), program = sys.argv[1:at], sys.argv[at + 1 :]
    _libc.prctl(_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    try:
        _enter(decoys, witnesses, program)
    except (NotHeld, OSError) as error:
        print(f"no cage: {error}", file=sys.stderr)
        raise SystemExit(REFUSED) from error


def _enter(decoys: str, witnesses: list[str], program: list[str]) -> None:
    """Go into the namespaces, and wait there as their process 1 until the program has ended."""
    ids, is_root = (os.getuid(), os.getgid()), os.getuid() == 0
    before = {path: os.stat(path).st_dev for path in (decoys, *_IN_MEMORY, "/dev") if os.path.isdir(path)}
    flags = _NEW_MOUNTS | _NEW_IPC | _NEW_PIDS | _NEW_NETWORK | (0 if is_root else _NEW_USER)
    child = _call("clone", _CLONE[os.uname().machine], flags | _SIGCHLD, 0, 0, 0, 0)
    if child:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: os.kill(child, signal.SIGKILL))
        raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
    try:
        _libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)  # with process 1 everything in here ends
        if not is_root:
            _map_ids(*ids)
        _make_place(decoys)
        _raise_loopback()
        if is_root:
            for number in _DROPPED.values():
                _check(_libc.prctl(_CAPBSET_DROP, number, 0, 0, 0), "drop a capability")
        os.closerange(3, 4096)  # a folder that is open could be written through
        os.chdir(decoys)
        worker = os.fork()
        if not worker:
            _give_up_capabilities(is_root=is_root)
            prove(decoys, witnesses, before)
            os.execv(program[0], program)
        os._exit(_wait_for(worker))
    except (NotHeld, OSError) as error:
        print(f"no cage: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(REFUSED)


def _wait_for(worker: int) -> int:
    """Until it has ended, take up whatever processes lose their parent."""
    while True:
        pid, status = os.wait()
        if pid == worker:
            return os.waitstatus_to_exitcode(status) & 0xFF


def _map_ids(uid: int, gid: int) -> None:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _make_place(decoys: str) -> None:
    _mount("", "/", "", _REC | _PRIVATE)
    devices = [name for name in _DEVICES if os.path.exists(f"/dev/{name}")]
    # Taken before everything becomes read-only; the decoys are where the devices wait until /dev is another.
    _mount("tmpfs", decoys, "tmpfs", _NOSUID | _NODEV, "mode=0755")
    for name in devices:
        os.close(os.open(f"{decoys}/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        _mount(f"/dev/{name}", f"{decoys}/{name}", "", _BIND)
    _set_flags("/", added=_ATTR_RDONLY)
    _mount("tmpfs", "/dev", "tmpfs", _NOSUID, "mode=0755")
    for name in devices:
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        _mount(f"{decoys}/{name}", f"/dev/{name}", "", _BIND)
        _set_flags(f"/dev/{name}", cleared=_ATTR_RDONLY)  # else a boundary within could not give it to its own commands
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"), ("ptmx", "pts/ptmx")):
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/pts")
    os.mkdir("/dev/shm")
    _mount("devpts", "/dev/pts", "devpts", _NOSUID, "newinstance,ptmxmode=0666,mode=0620")
    _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, "mode=1777")
    for folder in _IN_MEMORY:
        if os.path.isdir(folder) and not os.path.islink(folder):
            _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV, f"mode={'0755' if folder == '/run' else '1777'}")
    _mount("tmpfs", decoys, "tmpfs", _NOSUID | _NODEV, "mode=0755")
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV)


def _raise_loopback() -> None:
    """There are servers on it that no command may reach: it is the host's, as commands see it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _give_up_capabilities(*, is_root: bool) -> None:
    """An ordinary user has none left when the program starts; root has those that root has, except the dropped."""
    if not is_root:
        _call("capset", {"x86_64": 126, "aarch64": 91}[os.uname().machine], struct.pack("=Ii", 0x20080522, 0), bytes(24))


# --- the proof ------------------------------------------------------------------------------------------------------------


def prove(decoys: str, witnesses: list[str], before: dict[str, int]) -> None:
    """Raises NotHeld unless every mount but ours is read-only, ours are others than before, and nothing can be written elsewhere."""
    ours = {decoys, "/dev", "/dev/pts", "/dev/shm", "/proc", *_IN_MEMORY, *(f"/dev/{name}" for name in _DEVICES)}
    for point, options in _mounts():
        if "ro" not in options and point not in ours and not point.startswith(f"{decoys}/"):
            raise NotHeld(f"{point} is mounted writable")
    for path, device in before.items():
        if os.stat(path).st_dev == device:
            raise NotHeld(f"{path} is the one outside")
    for folder in ("/", "/etc", "/usr", "/var", "/var/cache", "/home", "/root", "/opt", *witnesses):
        _prove_closed(folder)
    for name in os.listdir("/dev"):
        if name not in (*_DEVICES, "fd", "stdin", "stdout", "ptmx", "pts", "shm"):
            raise NotHeld(f"/dev/{name} is there")
    with open(os.path.join(decoys, ".can-write"), "w"):
        pass
    os.unlink(os.path.join(decoys, ".can-write"))


def _prove_closed(folder: str) -> None:
    try:
        os.close(os.open(os.path.join(folder, f".storm-{os.getpid()}"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        is_shut_out = error.errno == errno.EACCES and not os.access(folder, os.X_OK)  # another user's: not even a name is looked up
        if error.errno in (errno.EROFS, errno.ENOENT, errno.ENOTDIR) or is_shut_out:
            return
        raise NotHeld(f"{folder}: {error.strerror}, not {os.strerror(errno.EROFS)}") from error
    os.unlink(os.path.join(folder, f".storm-{os.getpid()}"))
    raise NotHeld(f"a file could be made in {folder}")


def _mounts() -> list[tuple[str, list[str]]]:
    with open("/proc/self/mountinfo") as file:
        fields = [line.split(" ") for line in file]
    return [(each[4].encode().decode("unicode_escape"), each[5].split(",")) for each in fields]


# --- system calls ---------------------------------------------------------------------------------------------------------


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    done = _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())
    _check(done, f"mount {kind or 'flags'} at {target}")


def _set_flags(path: str, *, added: int = 0, cleared: int = 0) -> None:
    """Of a mount, and of all beneath it."""
    attributes = struct.pack("=QQQQ", added, cleared, 0, 0)
    _call(f"mount_setattr {path}", _MOUNT_SETATTR, _AT_FDCWD, path.encode(), _AT_RECURSIVE, attributes, len(attributes))


def _call(what: str, number: int, *arguments: int | bytes) -> int:
    passed = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _check(_libc.syscall(ctypes.c_long(number), *passed), what)


def _check(result: int, what: str) -> int:
    if result == -1:
        raise OSError(ctypes.get_errno(), f"{os.strerror(ctypes.get_errno())} ({what})")
    return result


if __name__ == "__main__":
    main()
