"""A view of the system of a command's own: mount, process and IPC namespaces, made by us without a helper program; and a network of the
session's own, with the user namespace that it belongs to.

Everything is read-only but the folders that are named; secrets are covered; /tmp, /run and /dev are private; there is no network but a
loopback interface that the commands of a session share.
"""

from __future__ import annotations

import os
import stat
import struct
from _socket import AF_INET, SOCK_DGRAM, SOCK_STREAM, socket

from dragoman.policy.sandbox.launcher import calls
from dragoman.policy.sandbox.launcher.calls import ATTR_NODEV, ATTR_NOSUID, ATTR_RDONLY, attach, mount, open_tree, set_mount_flags
from dragoman.policy.sandbox.launcher.order import Boundary

try:
    import fcntl
except ImportError:  # Windows, where no launcher runs
    pass

OF_SESSION = calls.CLONE_NEWUSER | calls.CLONE_NEWPID | calls.CLONE_NEWNET
OF_CALL = calls.CLONE_NEWNS | calls.CLONE_NEWPID | calls.CLONE_NEWIPC
"""In a session's user and network namespace. A process of one call never sees one of another: what it may write, the other may not."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_KEPT_IN_RUN = ("/run/current-system", "/run/opengl-driver", "/run/wrappers")
"""Where NixOS keeps its programs."""
_QUIET = calls.MS_NOSUID | calls.MS_NODEV
GATE_ADDRESS = "127.0.0.2"
"""Where gates are, so that they can be told from servers, which listen at 127.0.0.1 or everywhere."""
_NS_GET_USERNS = 0xB701
_IFF_UP, _SIOCGIFFLAGS, _SIOCSIFFLAGS = 1, 0x8913, 0x8914


def enter_network(uid: int, gid: int) -> None:
    """Settle in the user and network namespace this process was cloned into. Raises OSError: then nothing may be started in them."""
    _map_ids(uid, gid)
    _raise_loopback()


def enter() -> None:
    """Settle in the other namespaces this process was cloned into, as their process 1. Raises OSError, as above."""
    mount("proc", "/proc", "proc", _QUIET | calls.MS_NOEXEC)
    _make_run()
    _make_dev([(name, open_tree(f"/dev/{name}")) for name in _DEVICES if os.path.exists(f"/dev/{name}")])


def rehearse() -> None:
    """Do once, without effect, what `mount_all` will do: the first time takes a forked process longest."""
    tree = open_tree("/dev/shm")
    set_mount_flags(tree, ATTR_NOSUID | ATTR_NODEV)
    os.close(tree)


def open_gate() -> tuple[socket, int]:
    """A listener inside this network, and its port. Whoever gets its descriptor can accept on it from outside."""
    gate = socket(AF_INET, SOCK_STREAM)
    gate.bind((GATE_ADDRESS, 0))
    gate.listen(64)
    return gate, gate.getsockname()[1]


def join_network_of(pid: int) -> None:
    """Enter the network of a process in a user namespace that we, or whoever started us as this user, have made."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    # The process may have gone on into a user namespace within, which has no rights over its network.
    owner = fcntl.ioctl(network, _NS_GET_USERNS)
    for each in (owner, network):
        calls.set_namespace(each)
        os.close(each)


def _map_ids(uid: int, gid: int) -> None:
    calls.prctl(calls.PR_SET_DUMPABLE, 1)  # a process that is not dumpable may not write its own /proc files
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        opened = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(opened, text.encode())
        finally:
            os.close(opened)
    calls.prctl(calls.PR_SET_DUMPABLE, 0)


def mount_all(boundary: Boundary) -> None:
    """Until now, what is mounted outside came in here as well; from now on nothing does."""
    mount("", "/", "", calls.MS_REC | calls.MS_PRIVATE)
    if boundary.layer is not None:
        _lay_over(*boundary.layer)
    # Copies are taken before everything becomes read-only, and attached after it.
    private = [(path, open_tree(source)) for path, source in boundary.private]
    writable = [(path, open_tree(path)) for path in boundary.writable]
    caches = [(path, open_tree(path)) for path in boundary.caches]
    readable = [(path, open_tree(source)) for path, source in (*((path, path) for path in boundary.readable), *boundary.shown)]
    empty_folder, empty_file = (os.path.join(boundary.covers, name) for name in ("folder", "file"))
    covers = [(path, open_tree(empty_folder if os.path.isdir(path) else empty_file)) for path in boundary.hidden]
    for _, tree in (*readable, *covers):
        set_mount_flags(tree, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
    for _, tree in (*private, *writable, *caches):
        set_mount_flags(tree, ATTR_NOSUID | ATTR_NODEV)
    set_mount_flags("/", ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)
    # Root outside is root in here, and the kernel lets that one write its settings without any capability: /proc/sys/kernel/core_pattern
    # names a program that runs outside. To cover them one by one costs 2 ms; few programs write to their own files in /proc.
    for path in filter(os.path.isdir, ("/run",) if os.getuid() == 0 else ("/proc", "/run")):
        set_mount_flags(path, 0, clear=ATTR_RDONLY, recursive=False)
    set_mount_flags("/dev", 0, clear=ATTR_RDONLY | ATTR_NODEV)

    for path, tree in private:
        _attach(tree, path)
    for path, tree in sorted((*writable, *readable)):  # a folder before what lies in it
        _attach(tree, path)
    for path in (*boundary.pinned, *boundary.read_only):
        try:
            tree = open_tree(path, follow=False)  # another command may have put a link to a secret there
            if path in boundary.read_only:
                set_mount_flags(tree, ATTR_RDONLY)
            attach(tree, path)
        except (FileNotFoundError, NotADirectoryError):
            if path not in boundary.may_be_gone:
                raise
    for path, tree in caches:
        _attach(tree, path)
    for path, tree in covers:
        if os.path.lexists(path):  # not, where a private folder covers it already
            attach(tree, path)
        else:
            os.close(tree)
    os.chdir("/")


def _lay_over(place: str, upper: str, work: str, instead: str) -> None:
    """Mount over a folder so that it is seen and not written. The layers are named by descriptors: a path may hold a comma or a colon."""
    if not upper:
        attach(open_tree(instead), place)
        return
    opened = [os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW) for path in (place, upper, work)]
    named = [f"{role}dir=/proc/self/fd/{each}" for role, each in zip(("lower", "upper", "work"), opened, strict=True)]
    try:
        mount("overlay", place, "overlay", _QUIET, ",".join((*named, "userxattr")))
    except OSError:  # an older kernel, or a file system that cannot be a layer
        attach(open_tree(instead), place)
    for each in opened:
        os.close(each)


def _attach(tree: int, path: str) -> None:
    if not os.path.lexists(path):  # beneath a folder that is private now: then its place is made there
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.makedirs(path, 0o755, exist_ok=True)  # another command may make it at the same moment
        else:
            os.makedirs(os.path.dirname(path), 0o755, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    attach(tree, path)


def _make_run() -> None:
    if not os.path.isdir("/run"):
        return
    kept = [(path, open_tree(path)) for path in _KEPT_IN_RUN if os.path.isdir(path)]
    mount("tmpfs", "/run", "tmpfs", _QUIET, "mode=0755,size=1m")
    for path, tree in kept:
        _attach(tree, path)


def _make_dev(devices: list[tuple[str, int]]) -> None:
    """Our own, because root opens disks even where everything is mounted read-only."""
    mount("tmpfs", "/dev", "tmpfs", calls.MS_NOSUID | calls.MS_NOEXEC, "mode=0755,size=64k")
    for name, tree in devices:
        path = f"/dev/{name}"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o666))
        attach(tree, path)
    os.mkdir("/dev/pts", 0o755)
    os.mkdir("/dev/shm", 0o755)
    mount("devpts", "/dev/pts", "devpts", calls.MS_NOSUID | calls.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    mount("tmpfs", "/dev/shm", "tmpfs", _QUIET, "mode=1777")
    os.symlink("pts/ptmx", "/dev/ptmx")
    os.symlink("/proc/self/fd", "/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/dev/{name}")


def _raise_loopback() -> None:
    any_socket = socket(AF_INET, SOCK_DGRAM)
    asked = struct.pack("16sh14x", b"lo", 0)
    flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked))[1]
    fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))
    any_socket.close()
