"""The order to start a command, and its boundary: sent as bytes, these classes on both sides.

Both sides run the same Python, so `marshal` may carry it: it is built in, and names of files may hold any byte. The launcher is small so
that a fork of it is cheap; that is why these are plain classes.
"""

from __future__ import annotations

import marshal

from dragoman.policy.sandbox.launcher.mending import Repairs

FILTER_FD, INFO_FD = 9, 10
"""Where bubblewrap finds its seccomp filter, and tells its child's process id."""


class Boundary:
    """The files of a sandbox. All paths are absolute, with their links resolved, and exist."""

    def __init__(
        self,
        *,
        writable: tuple[str, ...] = (),
        pinned: tuple[str, ...] = (),
        read_only: tuple[str, ...] = (),
        hidden: tuple[str, ...] = (),
        readable: tuple[str, ...] = (),
        private: tuple[tuple[str, str], ...] = (),
        shown: tuple[tuple[str, str], ...] = (),
        covers: str = "",
        caches: tuple[str, ...] = (),
        may_be_gone: tuple[str, ...] = (),
        layer: tuple[str, str, str, str] | None = None,
    ) -> None:
        self.writable = writable
        self.pinned = pinned
        """Folders in what is writable that cannot be renamed or removed."""
        self.read_only = read_only
        """Files and folders in what is writable that are not."""
        self.hidden = hidden
        """Secrets: they look empty."""
        self.readable = readable
        """With namespaces: what stays visible although it lies in a private folder. With Landlock alone: all that can be read."""
        self.private = private
        """Where, and which folder is seen there instead: /tmp and the like."""
        self.shown = shown
        """Where, and what is seen there instead, read-only. With namespaces alone."""
        self.caches = caches
        """Folders that are writable wherever they lie: also in what is read-only."""
        self.layer = layer
        """A CacheLayer: a place among `caches`, and what is laid over it so that nothing is written there."""
        self.covers = covers
        """A folder with an empty `folder` and an empty `file`, to put over secrets."""
        self.may_be_gone = may_be_gone
        """What of `pinned` and `read_only` another command may move while this one starts: then it is left out."""


class Order:
    """A command to start."""

    def __init__(
        self,
        argv: tuple[str, ...],
        env: dict[str, str],
        directory: str,
        kind: str = "plain",
        boundary: Boundary | None = None,
        *,
        unix_sockets: bool = False,
        proxies: dict[str, str] | None = None,
        drop_spying: bool = False,
        terminal: tuple[int, int] | None = None,
        repairs: Repairs | None = None,
    ) -> None:
        self.argv = argv
        self.env = env
        self.directory = directory
        self.kind = kind
        """plain, namespaces, bubblewrap or landlock."""
        self.boundary = boundary or Boundary()
        self.unix_sockets = unix_sockets
        self.proxies = proxies or {}
        """Variables that lead the command to its gate: URLs that lack the port, which is known when the listener is made. None: no gate."""
        self.drop_spying = drop_spying
        """Without a boundary and as root: the command may not look into other processes."""
        self.terminal = terminal
        """Rows and columns of the terminal it is given in place of its streams; None: none."""
        self.repairs = repairs
        """What is to be mended inside the boundary, in place of a command."""

    def to_bytes(self) -> bytes:
        return marshal.dumps(
            {**vars(self), "boundary": vars(self.boundary), "repairs": vars(self.repairs) if self.repairs is not None else None}
        )


def read_order(data: bytes) -> Order:
    table = marshal.loads(data)
    repairs = table.pop("repairs")
    return Order(boundary=Boundary(**table.pop("boundary")), repairs=Repairs(**repairs) if repairs is not None else None, **table)
