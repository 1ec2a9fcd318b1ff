"""Recognises in a command's output what the sandbox refused, so that model and user know, and what it did not, so that it is not blamed.

A message alone is not believed where there is more to go by: a path is compared with the boundary and with what the user may do, a
host with those that the gate was asked for, a port with what listens on this machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.policy.sandbox.refusal_words import Kind, sentence
from dragoman.policy.sandbox.refused_paths import PathLimits, paths_in
from dragoman.values.commands import Reach
from dragoman.values.record import NO_HOSTS, HostsUsed

_READ_LINES = 200
_DENIED = r"(?:permission denied|operation not permitted)"
_SOCKETS = re.compile(
    rf"dial unix \S+ .*{_DENIED}|(?:could not create|create) socket: {_DENIED}|docker daemon (?:socket )?at unix:"
    rf"|could not create Unix socket .*{_DENIED}"
    rf"|error connecting to \S+ \({_DENIED}\)|process_singleton.*socket\(\) failed|\bsocket\(AF_UNIX\b.*{_DENIED}"
    rf"|listen EACCES: permission denied /|connect (?:EACCES|EPERM) /|MySQL server through socket .*\((?:1|13)\b"
    rf"|unix:\S* .*{_DENIED}|ping: .*(?:socktype|socket): .*not permitted|AF_UNIX.*{_DENIED}",
    re.IGNORECASE,
)
_SOCKET_MADE = re.compile(r"socket\b.*\n(?:.*\n){0,3}?PermissionError: \[Errno (?:1|13)\] [\w ]+$", re.MULTILINE)
"""The end of a traceback of Python's in which a socket was to be made: at levels 1 and 2 those for the network can be."""
_BUS = re.compile(r"^(?:Failed to connect to (?:system |user scope )?bus\b|System has not been booted with systemd)", re.MULTILINE)
_AGENT = re.compile(r"could not open a connection to your authentication agent|error connecting to agent", re.IGNORECASE)
_UNRESOLVED = re.compile(
    r"could not resolve (?:host(?:name)?|proxy)|couldn't resolve host|temporary failure in name resolution|name or service not known"
    r"|network is unreachable|no address associated with hostname|nodename nor servname|dns error|failed to lookup address"
    rf"|dial (?:tcp|udp)\b.*: socket: {_DENIED}|connect EACCES \d|(?-i:\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH)\b)",
    re.IGNORECASE,
)
_SOCKETS_OF_NETWORK = re.compile(rf"connection to server at .*could not create socket: {_DENIED}", re.IGNORECASE)
_SERVERS = re.compile(
    rf"listen (?:EACCES|EPERM)\b.*:\d+$|listen (?:tcp|udp)\S* \S+: socket: {_DENIED}|could not create IPv[46] socket .*{_DENIED}"
    rf"|java\.net\.SocketException: {_DENIED}|\bsocket\(\) .*failed \((?:1|13): {_DENIED}\)",
    re.IGNORECASE | re.MULTILINE,
)
_CURL = re.compile(r"^curl: \(7\) .*(?:couldn't connect to server|could not connect to server)$", re.IGNORECASE | re.MULTILINE)
"""With Landlock alone sockets for the network cannot be made either: by clients, by servers, and by curl, which does not say so."""
_NO_INDEX = re.compile(r"Could not find a version that satisfies the requirement .*\(from versions: none\)")
_REFUSED_HERE = re.compile(
    r"(?:127\.0\.0\.1|localhost|\[?::1\]?)\"?[^\d\n]{1,20}(?P<port>\d{2,5})\b.{0,60}(?:refused|couldn't connect)"
    r"|ECONNREFUSED (?:127\.0\.0\.1|localhost|::1):(?P<other>\d{2,5})",
    re.IGNORECASE,
)
_READ_ONLY = re.compile(
    r"read-only file system(?:$|[,.)]|: ['\"/]| \((?:os error )?30\)| \(os error)|\bEROFS\b(?!')|code: 'EROFS'|\[Errno 30\]"
    r"|\b30: Read-only",
    re.IGNORECASE | re.MULTILINE,
)
_ENDS_READ_ONLY = re.compile(r"(?:: |\] )read-only file system(?: \(os error 30\))?$", re.IGNORECASE)
_NO_ACCESS = re.compile(r"permission denied|\bEACCES\b|\[Errno 13\]|operation not permitted|\bEPERM\b|\[Errno 1\]", re.IGNORECASE)
_NOT_MADE = re.compile(r"\bENOENT\b.*\bmkdir '")
"""What Node says of a folder that it cannot make in a read-only place."""
_HALF_MADE = re.compile(r"\bENOENT\b.* open '(?P<path>/[^'\n]+/_npx/[0-9a-f]+)/package\.json'")
"""npx begins with a folder in its cache, ends where it may not write in the workspace, and takes that folder for whole the next time."""
_MISSING = re.compile(r"no such file or directory|cannot access|\bENOENT\b|\[Errno 2\]", re.IGNORECASE)
_HOME = re.compile(r"Failed to create headless user data directory")
_GIT = re.compile(
    r"\.git/(?:config|hooks|info)\b.*(?:device or resource busy|read-only file system|permission denied)|\.git\b.*resource busy",
    re.IGNORECASE,
)
_PATH_LINE = re.compile(r"\bpath:? ")
"""How Node names the path of an error, on a line of its own."""
_RIGHTS = re.compile(
    r"sudo: .*(?:no new privileges|must be owned by uid 0|effective uid is not 0|setresuid|unable to change to root)"
    r"|^strace: .*PTRACE_TRACEME.*not permitted|^ptrace: operation not permitted|^unshare: .*not permitted",
    re.IGNORECASE | re.MULTILINE,
)
_ROOT_RIGHTS = re.compile(
    r"^mount: .*(?:permission denied|must be superuser)|setgroups \S+ failed|^chown: .*(?:invalid argument|not permitted)"
    r"|^dmesg: .*not permitted|listen EACCES: permission denied \S*:\d{1,3}$|attempting to bind on address .*, \d{1,3}\)",
    re.IGNORECASE | re.MULTILINE,
)
"""What root may do outside, and nobody else."""
_SIGNALLED = re.compile(r"kill: \(?(?P<pid>\d+)\)?(?: -|:) (?:No such process|Operation not permitted)", re.IGNORECASE)
_LISTENS = "0A"
_OWN_ADDRESSES = ("0100007F", "00000000", "0" * 32, "00000000000000000000000001000000")
"""127.0.0.1, any address, and both for IPv6, as the kernel writes them."""


class Circumstances(msgspec.Struct, frozen=True):
    """What is known of a command beside its output."""

    level: int
    directory: str = ""
    reach: Reach = "workspace"
    temporary: str = "/tmp"
    has_gate: bool = False
    hosts: HostsUsed = NO_HOSTS
    unix_sockets: bool = False
    can_leave: bool = False
    """Whether the model can ask for the command to run outside."""


class _Found(msgspec.Struct, frozen=True):
    kind: Kind
    fields: dict[str, str] = {}
    is_of_use: bool = True


def is_about_writing(output: str) -> bool:
    """Whether something read-only was to be written."""
    return _READ_ONLY.search(output) is not None


def explain(output: str, about: Circumstances, limits: Callable[[], PathLimits]) -> str:
    """One line for the model, or empty. `output`: the end of what the command said; `limits` is asked only where a path is in question."""
    if about.reach == "outside":
        return ""
    lines = output.replace("\r", "\n").split("\n")[-_READ_LINES:]
    text = "\n".join(lines)
    found = (
        _find_socket(text, about)
        or _find_network(text, about)
        or _find_rights(text, about, limits)
        or _find_half_made(text, limits)
        or _find_hidden(lines, about, limits)
        or _find_write(lines, about, limits)
    )
    if found is None:
        return ""
    return sentence(found.kind, can_leave=about.can_leave, is_of_use=found.is_of_use, **found.fields)


def _find_socket(text: str, about: Circumstances) -> _Found | None:
    if about.level > 2 and _SOCKETS_OF_NETWORK.search(text):
        return _Found("network")
    if (about.level > 2 and _SERVERS.search(text)) or (about.level == 3 and _CURL.search(text)):
        return _Found("all_sockets")
    if about.unix_sockets:
        return None
    if _SOCKETS.search(text):
        return _Found("sockets")
    if _SOCKET_MADE.search(text):
        return _Found("sockets" if about.level <= 2 else "all_sockets")
    if _BUS.search(text) and os.path.exists("/run/systemd/system"):
        return _Found("sockets")
    return _Found("sockets") if _AGENT.search(text) and os.environ.get("SSH_AUTH_SOCK") else None


def _find_network(text: str, about: Circumstances) -> _Found | None:
    kind: Kind = "proxy" if about.has_gate else "network"
    asked = (*about.hosts.reached, *about.hosts.refused, *about.hosts.late)
    for line in text.split("\n"):
        if _UNRESOLVED.search(line) and not any(host.partition(":")[0] in line for host in asked):
            return _Found(kind)
    if _NO_INDEX.search(text) and not asked:
        return _Found(kind)
    if about.level > 2:
        return None
    for found in _REFUSED_HERE.finditer(text):
        port = int(found["port"] or found["other"])
        if _is_listened_to(port):
            return _Found("loopback", {"port": str(port)})
    return None


def _find_write(lines: list[str], about: Circumstances, limits: Callable[[], PathLimits]) -> _Found | None:
    is_unclear = False
    for number, line in enumerate(lines):
        is_read_only, is_denied = bool(_READ_ONLY.search(line)), about.level > 2 and bool(_NO_ACCESS.search(line))
        is_not_made = bool(_NOT_MADE.search(line))
        if not (is_read_only or is_denied or is_not_made):
            if _HOME.search(line):
                return _Found("writing", {"path": "the home folder", "temporary": about.temporary})
            if not _GIT.search(line):
                continue
        if _GIT.search(line) and about.reach != "read-only":
            return _Found("git")
        named = paths_in([line, *filter(_PATH_LINE.search, lines[number + 1 : number + 6])], about.directory)
        for path in named:
            drawn = limits()
            if about.reach == "read-only" and (is_read_only or is_not_made) and any(path.startswith(place) for place in drawn.writable):
                return _Found("read_only_run")
            if not drawn.keeps_from_writing(path):
                continue
            is_of_use = drawn.could_write(path)
            if is_of_use or is_read_only:
                return _Found("writing", {"path": path, "temporary": about.temporary}, is_of_use)
        is_unclear |= not named and _ENDS_READ_ONLY.search(line) is not None
    if not is_unclear:
        return None
    return _Found("read_only_run") if about.reach == "read-only" else _Found("unclear_writing", {"temporary": about.temporary})


def _find_half_made(text: str, limits: Callable[[], PathLimits]) -> _Found | None:
    found = _HALF_MADE.search(text)
    is_ours = found is not None and any(is_inside(found["path"], place) for place in limits().temporary)
    return _Found("half_made", {"path": found["path"]}) if found is not None and is_ours else None


def _find_hidden(lines: list[str], about: Circumstances, limits: Callable[[], PathLimits]) -> _Found | None:
    for line in lines:
        is_missing = _MISSING.search(line) is not None
        if is_missing or _NO_ACCESS.search(line):
            for path in paths_in([line], about.directory):
                drawn = limits()
                is_kept = drawn.is_not_seen(path) if is_missing else about.level == 3 and drawn.keeps_from_reading(path)
                if is_kept or drawn.is_hidden(path):
                    return _Found("hidden", {"path": path})
    return None


def _find_rights(text: str, about: Circumstances, limits: Callable[[], PathLimits]) -> _Found | None:
    if _RIGHTS.search(text) or (_ROOT_RIGHTS.search(text) and limits().user == 0):
        return _Found("rights")
    signalled = _SIGNALLED.search(text)
    return _Found("processes") if signalled and os.path.exists(f"/proc/{signalled['pid']}") else None


def _is_listened_to(port: int) -> bool:
    """Whether something listens on this port of 127.0.0.1 outside the sandbox, as the kernel lists it: nothing is connected to."""
    wanted = {f"{address}:{port:04X}" for address in _OWN_ADDRESSES}
    for table in ("/proc/self/net/tcp", "/proc/self/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                rows = (line.split() for line in file)
                if any(len(row) > 3 and row[3] == _LISTENS and row[1] in wanted for row in rows):
                    return True
        except OSError:
            continue
    return False
