"""Recognises in a command's output what the sandbox refused, so that the model knows and does not search for another cause."""

from __future__ import annotations

import re

_NETWORK = re.compile(
    r"could not resolve|couldn't resolve|name resolution|name or service not known|network is unreachable|EAI_AGAIN|ENOTFOUND|ENETUNREACH"
    r"|no address associated with hostname|nodename nor servname|dns error|failed to lookup address"
    r"|socket: (?:permission denied|operation not permitted)|PermissionError.*socket",
    re.IGNORECASE,
)
_WRITING = re.compile(r"read-only file system|EROFS|os error 30|Errno 30", re.IGNORECASE)
_BUSY = re.compile(r"\.git/?.*(?:device or resource busy|read-only file system)|could not lock config file", re.IGNORECASE)
_DENIED = re.compile(r"permission denied|operation not permitted|EPERM|EACCES|Errno 13|os error 13", re.IGNORECASE)
_SOCKETS = re.compile(r"docker daemon|AF_UNIX|ssh-agent|authentication agent|D-Bus|dbus|tmux.*(?:socket|connecting)", re.IGNORECASE)
_SOCKET_MADE = re.compile(r"socket\b.*\n(?:.*\n){0,3}?PermissionError: \[Errno 13\] Permission denied\s*$", re.MULTILINE)
"""The end of a traceback of Python's in which a socket was to be made: at levels 1 and 2 those for the network can be."""

_NETWORK_LINE = "The sandbox has no network: nothing can be downloaded or reached from a command."
_GATE_LINE = (
    "Commands in the sandbox reach the network only through an HTTP proxy, which the proxy variables name, and only allowed hosts: "
    "SSH, other protocols, and programs that do not heed the variables reach nothing."
)
_WRITING_LINE = "The sandbox lets commands write only in the workspace and in {temporary}; other places are read-only."
_GIT_LINE = "In the sandbox .git/config, .git/hooks and .git itself cannot be changed."
_DENIED_LINE = "This may be the sandbox: commands write only in the workspace and in {temporary}, and read no secrets."
_SOCKETS_LINE = "The sandbox does not let commands talk to other programs over UNIX sockets."


def is_about_writing(output: str) -> bool:
    """Whether something read-only was to be written."""
    return _WRITING.search(output) is not None


def explain(output: str, level: int, temporary: str, *, has_gate: bool = False) -> str:
    """One line for the model, or empty. `output`: the end of what the command said."""
    if _NETWORK.search(output):
        return _GATE_LINE if has_gate else _NETWORK_LINE
    if _BUSY.search(output):
        return _GIT_LINE
    if _WRITING.search(output):
        return _WRITING_LINE.format(temporary=temporary)
    if _SOCKETS.search(output) or _SOCKET_MADE.search(output):
        return _SOCKETS_LINE
    if level > 2 and _DENIED.search(output):
        return _DENIED_LINE.format(temporary=temporary)
    return ""
