"""What the sandbox stopped, in a sentence for the model with what to do, and the way back from that sentence to its kind, so that the user
can be told the same in their language."""

from __future__ import annotations

import re
from typing import Literal

from dragoman.values.commands import REFUSED_TO_WRITE

Kind = Literal[
    "network", "proxy", "sockets", "all_sockets", "loopback",
    "writing", "unclear_writing", "read_only_run", "git", "hidden", "rights", "processes", "half_made",
]  # fmt: skip

_SENTENCES: dict[Kind, str] = {
    "network": "The sandbox stopped this: commands there have no network.",
    "proxy": "The sandbox stopped this: the only way to the network there is the HTTP proxy that the proxy variables name, and this "
    "program does not use it; ssh and other protocols have no way.",
    "sockets": "The sandbox stopped this: commands there cannot open UNIX or raw sockets, so they do not reach other programs on this "
    "machine (docker, ssh-agent, D-Bus, tmux, a database's socket).",
    "all_sockets": "The sandbox stopped this: commands there cannot open sockets, so they reach neither the network nor other programs.",
    "writing": "The sandbox stopped this: {path} is read-only there. Commands write only in the workspace and in {temporary}: write "
    "there if you can.",
    "unclear_writing": "This may be the sandbox: commands there write only in the workspace and in {temporary}.",
    "read_only_run": "The sandbox stopped this: the command ran with the workspace read-only. If it has to write, call it again with "
    "`writes`.",
    "git": "The sandbox stopped this: .git/config, .git/hooks and .git itself cannot be changed there.",
    "hidden": "The sandbox hides {path} from commands: secrets, temporary files of other programs and, where a command only reads, other "
    "projects are not seen there.",
    "loopback": "The sandbox stopped this: 127.0.0.1 is the sandbox's own there, and the user's own server on port {port} is not reached.",
    "rights": "The sandbox stopped this: commands there get no more rights than they have, so sudo, mount, ptrace, ports below 1024 "
    "and the like do not work.",
    "processes": "The sandbox stopped this: commands there see and signal only processes of their own.",
    "half_made": "A run that the sandbox kept from writing has left {path} half made: remove that folder and call the command again with "
    "`writes`.",
}
_OUTSIDE = " If it must be done, call it again with `outside` and say why."
_USER = " If it must be done, tell the user, who can do it outside the sandbox."
_WITHOUT_WAY: tuple[Kind, ...] = ("unclear_writing", "read_only_run", "half_made")


def sentence(kind: Kind, *, can_leave: bool, is_of_use: bool = True, **fields: str) -> str:
    """`can_leave`: the tool offers `outside`. `is_of_use`: outside it could work."""
    way = "" if kind in _WITHOUT_WAY or not is_of_use else _OUTSIDE if can_leave else _USER
    return _SENTENCES[kind].format(**fields) + way


def read_sentence(told: str) -> tuple[Kind, dict[str, str]] | None:
    """The kind of the first of these sentences in what the model was told, and what it names."""
    for kind, template in _SENTENCES.items():
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.{1,300}?)", re.escape(template))
        if found := re.search(pattern, told):
            return kind, found.groupdict()
    return ("read_only_run", {}) if REFUSED_TO_WRITE in told else None
