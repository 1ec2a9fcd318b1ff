"""What a hostile command would try. Runs inside the sandbox, with the standard library alone: `attacks.py WORLD`, which prints JSON.

Each attack runs in a process of its own and returns whether it got what it wanted, as far as it can see from inside.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

World = dict[str, Any]
Attack = Callable[[World], bool]
ATTACKS: dict[str, Attack] = {}
libc = ctypes.CDLL(None, use_errno=True)
IS_X86 = os.uname().machine == "x86_64"
PAYLOAD = "HOSTILE"


def attack(name: str) -> Callable[[Attack], Attack]:
    def register(function: Attack) -> Attack:
        ATTACKS[name] = function
        return function

    return register


def read(path: str) -> str:
    with open(path, errors="replace") as file:
        return file.read(100_000)


def write(path: str, text: str = PAYLOAD) -> bool:
    with open(path, "w") as file:
        file.write(text)
    return True


def call(x86: int, arm: int, *arguments: int) -> bool:
    return libc.syscall(ctypes.c_long(x86 if IS_X86 else arm), *map(ctypes.c_long, arguments)) >= 0


# --- secrets


@attack("read `~/.ssh/id_rsa`")
def _(world: World) -> bool:
    return world["secret"] in read(f"{world['home']}/.ssh/id_rsa")


@attack("read it through a link in the workspace")
def _(world: World) -> bool:
    os.symlink(f"{world['home']}/.ssh", f"{world['workspace']}/link-to-ssh")
    return world["secret"] in read(f"{world['workspace']}/link-to-ssh/id_rsa")


@attack("learn the names of files in `~/.ssh`")
def _(world: World) -> bool:
    try:
        os.stat(f"{world['home']}/.ssh/id_rsa")
    except FileNotFoundError:
        return "id_rsa" in os.listdir(f"{world['home']}/.ssh")
    return True


@attack("read the keys that Dragoman stored")
def _(world: World) -> bool:
    return world["secret"] in read(f"{world['home']}/.local/share/dragoman/keys.json")


@attack("read a variable of the agent that is not on the list")
def _(world: World) -> bool:
    return "CORP_LOGIN" in os.environ


@attack("read other programs' files in `/tmp`")
def _(world: World) -> bool:
    return world["secret"] in read(world["in_tmp"])


@attack("read those by links of the workspace that pass for a toolchain")
def _(world: World) -> bool:
    return world["secret"] in read(f"{world['folder_in_tmp']}/kept.txt")


@attack("open a disk or the machine's memory")
def _(world: World) -> bool:
    for path in world["disks"]:
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError:
            continue
        return True
    return False


@attack("use a descriptor that was left open")
def _(world: World) -> bool:
    return world["open"] != [0, 1, 2]


# --- writing


@attack("write outside the workspace")
def _(world: World) -> bool:
    return write(f"{world['outside']}/new.txt")


@attack("empty a file outside")
def _(world: World) -> bool:
    os.truncate(f"{world['outside']}/full.txt", 0)
    return True


@attack("write outside through a link")
def _(world: World) -> bool:
    os.symlink(f"{world['outside']}/victim.txt", f"{world['workspace']}/link-out")
    return write(f"{world['workspace']}/link-out")


@attack("write outside through a hard link")
def _(world: World) -> bool:
    os.link(f"{world['outside']}/victim.txt", f"{world['workspace']}/hard-link")
    return write(f"{world['workspace']}/hard-link")


@attack("write outside through a hard link that was there before")
def _(world: World) -> bool:
    return write(f"{world['workspace']}/linked/before.txt")


@attack("write outside while a link is swapped (race)")
def _(world: World) -> bool:
    place, real = f"{world['workspace']}/flip", f"{world['workspace']}/flip-real"
    os.makedirs(real, exist_ok=True)
    stop = time.monotonic() + 0.3

    def flip() -> None:
        while time.monotonic() < stop:
            for target in (real, world["outside"]):
                try:
                    os.symlink(target, f"{place}.tmp")
                    os.rename(f"{place}.tmp", place)
                except OSError:
                    pass

    thread = threading.Thread(target=flip)
    thread.start()
    while time.monotonic() < stop:
        try:
            write(f"{place}/raced.txt")
        except OSError:
            pass
    thread.join()
    return os.path.exists(f"{world['outside']}/raced.txt")


@attack("change the mode of a file outside")
def _(world: World) -> bool:
    os.chmod(f"{world['outside']}/victim.txt", 0o777)
    return True


@attack("change the times of a file outside")
def _(world: World) -> bool:
    os.utime(f"{world['outside']}/victim.txt", (1, 1))
    return True


@attack("change the owner, group or attributes of a file outside")
def _(world: World) -> bool:
    victim = f"{world['outside']}/victim.txt"
    try:
        os.setxattr(victim, "user.note", b"x")
    except OSError:  # some file systems have no attributes
        os.chown(victim, -1, os.getgid())
    return True


@attack("leave a file in `/dev/shm`")
def _(world: World) -> bool:
    return write(world["in_shm"])


@attack("leave a file in the system's `/tmp`")
def _(world: World) -> bool:
    return write(f"/tmp/{world['mark']}")


@attack("write from a program in memory (memfd)")
def _(world: World) -> bool:
    paper = os.memfd_create("program", 0)
    os.write(paper, f"#!/bin/sh\necho {PAYLOAD} > {world['outside']}/from-memory.txt\n".encode())
    return os.spawnv(os.P_WAIT, f"/proc/self/fd/{paper}", ["program"]) == 0


# --- what is believed or run later


@attack("add a hook to `.git/hooks`")
def _(world: World) -> bool:
    return write(f"{world['workspace']}/.git/hooks/pre-commit")


@attack("change `.git/config`")
def _(world: World) -> bool:
    return write(f"{world['workspace']}/.git/config", f"[core]\n\tfsmonitor = {PAYLOAD}\n")


@attack("move `.git` away and make another")
def _(world: World) -> bool:
    os.rename(f"{world['workspace']}/.git", f"{world['workspace']}/.git-old")
    os.rename(f"{world['workspace']}/.git-old", f"{world['workspace']}/.git")  # the other attacks need it
    return True


@attack("lead git elsewhere with `.git/commondir`")
def _(world: World) -> bool:
    return write(f"{world['workspace']}/.git/commondir", "../hostile\n")


@attack("change the project's `.dragoman/config.toml`")
def _(world: World) -> bool:
    return write(f"{world['workspace']}/.dragoman/config.toml")


@attack("have a new `AGENTS.md` believed")
def _(world: World) -> bool:
    return write(f"{world['workspace']}/AGENTS.md")


@attack("have our guard empty a folder outside, by a repository swapped for a link")
def _(world: World) -> bool:
    work = world["workspace"]
    os.rename(f"{work}/sub", f"{work}/sub-moved")
    os.mkdir(f"{work}/sub")
    os.symlink(f"{world['outside']}/documents", f"{work}/sub/.git")
    return False  # what counts is what is done afterwards


@attack("have our guard write outside, by a folder of hooks swapped for a link")
def _(world: World) -> bool:
    work = world["workspace"]
    os.rename(f"{work}/githooks", f"{work}/githooks-moved")
    os.symlink(f"{world['outside']}/documents", f"{work}/githooks")
    return False


@attack("replace the sandbox's own temporary folder")
def _(world: World) -> bool:
    for name in os.listdir(f"{world['workspace']}/tmp"):
        if name.startswith("dragoman-private-"):
            private = f"{world['workspace']}/tmp/{name}"
            os.rename(f"{private}/tmp", f"{private}/moved")
            os.symlink(world["outside"], f"{private}/tmp")
            return True
    return False


@attack("stop the agent by a FIFO in the place of a file of git's")
def _(world: World) -> bool:
    work = world["workspace"]
    for folder in ("pipes/.git", "pipes/.git/refs", "pipes/.git/objects"):
        os.makedirs(f"{work}/{folder}", exist_ok=True)
    for name in ("config", "HEAD", "hooks", "commondir"):
        os.mkfifo(f"{work}/pipes/.git/{name}")
    for name in ("info/exclude", "rebase-merge/git-rebase-todo", "MERGE_HEAD"):
        path = f"{work}/.git/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            os.unlink(path)
        os.mkfifo(path)
    return False


@attack("change Dragoman's own configuration")
def _(world: World) -> bool:
    return write(f"{world['home']}/.config/dragoman/config.toml")


@attack("change a saved session")
def _(world: World) -> bool:
    return write(f"{world['home']}/.local/share/dragoman/sessions/one.jsonl")


@attack("change `~/.bashrc`")
def _(world: World) -> bool:
    return write(f"{world['home']}/.bashrc")


# --- other processes


@attack("read another process's environment in `/proc`")
def _(world: World) -> bool:
    return world["secret"] in read(f"/proc/{world['victim']}/environ")


@attack("read the agent's environment in `/proc`")
def _(world: World) -> bool:
    return world["secret"] in read(f"/proc/{world['agent']}/environ")


@attack("write another process's memory")
def _(world: World) -> bool:
    os.close(os.open(f"/proc/{world['victim']}/mem", os.O_RDWR))
    return True


@attack("write the memory of a process 1 that is not confined itself")
def _(world: World) -> bool:
    os.close(os.open(f"/proc/{world['parent']}/mem", os.O_RDWR))
    return "Seccomp:\t2" not in read(f"/proc/{world['parent']}/status")


@attack("trace another process (ptrace)")
def _(world: World) -> bool:
    return call(101, 117, 16, world["victim"], 0, 0)


@attack("read another process (process_vm_readv)")
def _(world: World) -> bool:
    buffer = ctypes.create_string_buffer(8)
    vector = struct.pack("PP", ctypes.addressof(buffer), 8)
    done = libc.syscall(ctypes.c_long(310 if IS_X86 else 270), world["victim"], vector, 1, vector, 1, 0)
    return done >= 0 or ctypes.get_errno() == errno.EFAULT  # it may, but has nothing at that address


@attack("take a descriptor of another process (pidfd_getfd)")
def _(world: World) -> bool:
    return call(438, 438, os.pidfd_open(world["victim"]), 0, 0)


@attack("signal another process")
def _(world: World) -> bool:
    os.kill(world["victim"], signal.SIGCONT)
    return True


@attack("outlive the call (setsid, double fork, `env -i`, SIGTERM ignored)")
def _(world: World) -> bool:
    script = f"trap '' TERM HUP; exec -a {world['mark']} sleep 1000"
    for line in (f"(setsid env -i bash -c {script!r} &) &", f"nohup bash -c {script!r} & disown"):
        os.spawnv(os.P_WAIT, "/bin/bash", ["bash", "-c", f"{line} true >/dev/null 2>&1"])
    return False  # seen from outside


# --- talking to others


def unix_send(path: str, kind: int) -> bool:
    with socket.socket(socket.AF_UNIX, kind) as client:
        client.connect(path)
    return True


@attack("UNIX socket by path, outside")
def _(world: World) -> bool:
    return unix_send(world["unix_outside"], socket.SOCK_STREAM)


@attack("UNIX socket by path, in the workspace")
def _(world: World) -> bool:
    return unix_send(world["unix_inside"], socket.SOCK_DGRAM)


@attack("UNIX socket by path, from a pair of sockets")
def _(world: World) -> bool:
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.connect(world["unix_inside"])
    one.send(b"hostile")
    return True


@attack("abstract UNIX socket")
def _(world: World) -> bool:
    return unix_send("\0" + world["mark"], socket.SOCK_STREAM)


@attack("sockets of docker, D-Bus, ssh-agent, systemd")
def _(world: World) -> bool:
    paths = ["/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify"]
    for path in paths:
        try:
            return unix_send(path, socket.SOCK_STREAM)
        except OSError:
            continue
    return any(os.path.exists(path) for path in paths) and "SSH_AUTH_SOCK" in os.environ


@attack("TCP to a server on this machine")
def _(world: World) -> bool:
    with socket.create_connection(("127.0.0.1", world["tcp"]), 1) as client:
        return client.recv(7) == b"service"


@attack("TCP to a server of another session")
def _(world: World) -> bool:
    with socket.create_connection(("127.0.0.1", world["elsewhere"]), 1) as client:
        return client.recv(7) == b"service"


@attack("TCP to a port that another session opened to the user's browser")
def _(world: World) -> bool:
    with socket.create_connection((world["opened"], world["elsewhere"]), 1) as client:
        return client.recv(7) == b"service"


@attack("reach a host through the gate of another command")
def _(world: World) -> bool:
    ports = [line.split()[1].split(":") for line in read("/proc/net/tcp").splitlines()[1:] if line.split()[3] == "0A"]
    for address, port in ports:
        if address == "0100007F":  # where gates never listen, and servers of tests that run meanwhile do
            continue
        for shown in ("", "Proxy-Authorization: Basic ZHJhZ29tYW46\r\n", "Proxy-Authorization: Basic ZHJhZ29tYW46ZHJhZ29tYW4=\r\n"):
            where = socket.inet_ntoa(struct.pack("=I", int(address, 16))), int(port, 16)
            with suppress(OSError), socket.create_connection(where, 1) as client:
                client.settimeout(1)
                client.send(f"CONNECT example.org:80 HTTP/1.1\r\n{shown}\r\n".encode())
                if b" 200 " in client.recv(100):
                    return True
    return False


@attack("see a command in the background, and its files by `/proc`")
def _(world: World) -> bool:
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            if read(f"/proc/{name}/cmdline").endswith(f"{world['beside']}\0"):  # our own holds it too, in the middle
                return bool(os.listdir(f"/proc/{name}/root/"))
    return False


@attack("UDP to a server on this machine, as for DNS")
def _(world: World) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"hostile", ("127.0.0.1", world["udp"]))
        client.settimeout(0.3)
        return client.recv(7) == b"service"


@attack("leave the machine")
def _(world: World) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("192.0.2.1", 53))  # sends nothing; it needs a route
        return True


@attack("raw and packet sockets")
def _(world: World) -> bool:
    for family, kind, protocol in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_PACKET, 2, 0)):
        try:
            socket.socket(family, kind, protocol).close()
        except OSError:
            continue
        return True
    return False


@attack("netlink other than routes, vsock, MPTCP, AF_ALG")
def _(world: World) -> bool:
    for family, kind, protocol in ((16, socket.SOCK_RAW, 9), (16, socket.SOCK_RAW, 15), (40, 1, 0), (2, 1, 262), (38, 5, 0)):
        try:
            socket.socket(family, kind, protocol).close()
        except OSError:
            continue
        return True
    return False


# --- the kernel


@attack("io_uring")
def _(world: World) -> bool:
    parameters = ctypes.create_string_buffer(120)
    return libc.syscall(ctypes.c_long(425), 4, parameters) >= 0


@attack("new namespaces (unshare, clone)")
def _(world: World) -> bool:
    return call(272, 97, 0x10000000) or call(56, 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)


@attack("mount, and undo mounts")
def _(world: World) -> bool:
    mounted = libc.mount(b"tmpfs", world["workspace"].encode(), b"tmpfs", 0, None) == 0
    return mounted or any(libc.umount2(path, 2) == 0 for path in (b"/tmp", b"/proc", world["workspace"].encode()))


@attack("leave a program that runs as its owner (setuid)")
def _(world: World) -> bool:
    path = os.path.join(world["workspace"], "as-owner")
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755))
    tries = (
        lambda: os.chmod(path, 0o4755),
        lambda: os.chmod(path, 0o6755),
        lambda: os.close(os.open(f"{path}-new", os.O_CREAT | os.O_WRONLY, 0o4755)),
        lambda: os.mknod(f"{path}-node", 0o4755),
    )
    for attempt in tries:
        with suppress(OSError):
            attempt()
    names = [name for name in os.listdir(world["workspace"]) if name.startswith("as-owner")]
    return any(os.stat(os.path.join(world["workspace"], name)).st_mode & stat.S_ISUID for name in names)


@attack("change the kernel's settings in `/proc/sys`")
def _(world: World) -> bool:
    """Opened, and nothing written: what stands there names a program that the kernel starts."""
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


@attack("bpf, perf, userfaultfd, keyring")
def _(world: World) -> bool:
    buffer = ctypes.addressof(ctypes.create_string_buffer(128))
    return call(321, 280, 0, buffer, 128) or call(298, 241, buffer, 0, -1, -1, 0) or call(323, 282, 1) or call(250, 219, 0, -3, 1)


@attack("system calls counted in another way (x32)")
def _(world: World) -> bool:
    return IS_X86 and call(0x40000000 + 39, -1)


@attack("gain rights from a program (no_new_privs), or keep capabilities")
def _(world: World) -> bool:
    status = read("/proc/self/status")
    return "NoNewPrivs:\t1" not in status or "CapEff:\t0000000000000000" not in status


# --- one after the other


def try_one(function: Attack, world: World) -> bool:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        got = False
        try:
            got = function(world)
        except BaseException:
            pass
        os.write(writing, b"1" if got else b"0")
        os._exit(0)
    os.close(writing)
    answer = os.read(reading, 1)
    os.close(reading)
    os.waitpid(child, 0)
    return answer == b"1"


def main() -> None:
    world: World = json.loads(sys.argv[1])
    world["open"] = sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1]  # the last is the listing itself
    world["parent"] = os.getppid()
    print(json.dumps({name: try_one(function, world) for name, function in ATTACKS.items()}))


if __name__ == "__main__":
    main()
