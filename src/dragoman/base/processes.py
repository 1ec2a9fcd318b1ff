"""Ends the processes of a call with the call, and with us.

Ending is: SIGTERM to the group, a short grace period, SIGKILL. Processes that left the group (setsid, nohup, disown) still have their
owner's cookie in their environment; on Linux they are found by it. A process that also cleared its environment is not found
here: where there is a launcher (policy/sandbox), it starts what could do so, and adopts it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import lru_cache

COOKIE = "DRAGOMAN_CALL"
"""The environment variable that identifies the processes of a call. It names the enclosing calls as well."""

GRACE_S = 0.2
"""How long processes have to end after SIGTERM."""
_KILLING_S = 0.2
_STARTING_S = 0.1
"""How long a look for processes waits in all for those that are just being started."""


def end_processes(group: int | None, cookie: str, variable: str = COOKIE) -> None:
    """End a process group and all other processes with the cookie in that variable: first SIGTERM, then SIGKILL. Blocks for half a second
    at most."""
    if os.name != "posix":
        if group is not None:
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(group)], capture_output=True, check=False)
        return
    if not _signal(group, cookie, variable, signal.SIGTERM):
        return
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline:
        time.sleep(0.01)
        if not _signal(group, cookie, variable, 0):
            return
    deadline = time.monotonic() + _KILLING_S
    while _signal(group, cookie, variable, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(0.01)


def kill_group(leader: int) -> None:
    """Kill a process that was started in a new session, and everything it started, without a grace period. Does nothing if it has ended."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(leader, signal.SIGKILL)
        else:
            os.kill(leader, signal.SIGTERM)  # on Windows any signal ends the process at once
    except (ProcessLookupError, PermissionError):
        pass


class Watcher:
    """A shell that waits on a pipe from us. When we die the pipe closes, and it ends the command for us.

    It finds the command by its group and by its cookie, which is not in its own environment. It is started first, so that the command
    is never left running if we die.
    """

    SCRIPT = """
read -r group
read -r _
[ -z "$group" ] || kill -s KILL -- "-$group"
rounds=0
while [ $rounds -lt 50 ]; do
    found=$(grep -alsF -e "$1" /proc/[0-9]*/environ)
    [ -n "$found" ] || exit
    for each in $found; do
        each=${each#/proc/}
        kill -s KILL "${each%/environ}"
    done
    rounds=$((rounds + 1))
done
"""

    def __init__(self, cookie: str) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if os.name != "posix":
            return
        reading, self._pipe = os.pipe()
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", self.SCRIPT, "dragoman-watcher", cookie],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"},
                start_new_session=True,
            )
        except OSError:  # no shell: then the command ends with its call, but not if we die
            os.close(self._pipe)
        finally:
            os.close(reading)

    def watch(self, group: int) -> None:
        if self._process is None:
            return
        try:
            os.write(self._pipe, b"%d\n" % group)
        except OSError:  # the watcher was killed
            pass

    def dismiss(self) -> None:
        if self._process is None:
            return
        self._process.kill()  # before its pipe closes: there is nothing left for it to do
        os.close(self._pipe)
        self._process.wait()


def identify_this_process() -> str:
    """Its number, when it was started and its namespace: no later process has the same."""
    return _identify(os.getpid())


@lru_cache(maxsize=1)
def _identify(pid: int) -> str:
    return f"{pid}.{_started(pid)}.{_namespace()}"


def is_alive(identity: str) -> bool:
    """Whether that very process is alive: one that has its number by now started at another time. Those of another container are not ours
    to judge, and count as alive."""
    pid, started, namespace = [*identity.split("."), "", ""][:3]
    if not pid.isdigit() or namespace != _namespace():
        return True
    if started:
        return _started(int(pid)) == started
    try:
        os.kill(int(pid), 0)  # a system without /proc
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid").rpartition("[")[2].rstrip("]")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process was started, in the system's own count; empty if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    is_gone = not fields or fields[0] in (b"Z", b"X")
    return "" if is_gone else fields[19].decode()


def _signal(group: int | None, cookie: str, variable: str, number: int) -> bool:
    """Send a signal to every process of the call. Returns whether any of them is alive."""
    reached = group is not None and _send_signal(os.killpg, group, number)
    carriers = [pid for pid in _pids_with_cookie(cookie, variable) if _send_signal(os.kill, pid, number)] if cookie else []
    return bool(carriers) or (reached and group is not None and _has_living(group))


def _send_signal(send: Callable[[int, int], None], target: int, number: int) -> bool:
    try:
        send(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _pids_with_cookie(cookie: str, variable: str) -> list[int]:
    """Ids of living processes with the cookie in that variable. Elsewhere in an environment the same letters may stand by chance."""
    name, wanted = f"{variable}=".encode(), cookie.encode()
    until_s = time.monotonic() + _STARTING_S
    found = ((pid, environment or _environment_once_started(pid, until_s)) for pid, environment in _read_each("environ"))
    return [
        pid
        for pid, environment in found
        if wanted in environment and any(wanted in each for each in environment.split(b"\0") if each.startswith(name))
    ]


def _environment_once_started(pid: int, until_s: float) -> bytes:
    """The environment of a process that seems to have none: while a program replaces another in it, neither that nor its arguments can be
    read, and on a busy machine that moment is long. Empty where it has none, has ended, or belongs to the system."""
    while True:
        try:
            arguments, stat = _read(pid, "cmdline"), _read(pid, "stat")
            has_memory = stat.rpartition(b")")[2].split()[20] != b"0"
            if arguments or not has_memory or time.monotonic() > until_s:
                return _read(pid, "environ") if arguments else b""
        except (OSError, IndexError):
            return b""
        time.sleep(0.001)


def _has_living(group: int) -> bool:
    """Whether a group that can be signalled has more than zombie processes (some containers never reap them)."""
    found = False
    for _, stat in _read_each("stat"):
        found = True
        # pid (name) state parent group …: the name may contain anything, even a bracket
        state, _, members_group = stat.rpartition(b")")[2].split()[:3]
        if int(members_group) == group and state not in b"ZX":
            return True
    return not found


def _read_each(file_name: str) -> Iterator[tuple[int, bytes]]:
    """Read one file of every accessible process, by process id. Linux only: elsewhere there is no /proc."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            yield int(name), _read(int(name), file_name)
        except OSError:  # it has ended, or is not ours
            continue


def _read(pid: int, file_name: str) -> bytes:
    with open(f"/proc/{pid}/{file_name}", "rb", buffering=0) as file:
        return file.read()
