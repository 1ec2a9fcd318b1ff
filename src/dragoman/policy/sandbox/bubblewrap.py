"""Level 2: bubblewrap, where it may make namespaces and we may not, because the system lets only chosen programs do it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from dragoman.policy.sandbox.launcher.order import FILTER_FD, Boundary

_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin")
"""Fixed: a program of that name on PATH may be anybody's."""
_KEPT_IN_RUN = ("/run/current-system", "/run/opengl-driver", "/run/wrappers")

_AS_CHILD = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
"""bubblewrap's own process 1 is not under the filter, and a command could write its memory. So a shell under the filter is process 1; the
command is not, because a process 1 does not get the signals it sends itself."""


def find_bubblewrap() -> str:
    """The absolute path of bubblewrap, or empty."""
    paths = (os.path.join(folder, "bwrap") for folder in _FOLDERS)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), "")


def wrap(program: str, argv: Sequence[str], directory: str, boundary: Boundary, *, own_network: bool = True) -> tuple[str, ...]:
    """The command line that runs `argv` inside. The seccomp filter is expected at FILTER_FD. `own_network`: else it is ours."""
    words = [program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--disable-userns"]
    words += ["--unshare-net"] if own_network else []
    words += [
        "--die-with-parent",
        "--as-pid-1",
        "--cap-drop",
        "ALL",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        *_empty("/run"),
    ]
    if os.getuid() == 0:  # root outside may write the kernel's settings without any capability
        words += ["--remount-ro", "/proc"]
    for path in _KEPT_IN_RUN:
        words += ["--ro-bind-try", path, path]
    for place, source in boundary.private:
        words += ["--bind", source, place]
    shown = dict(boundary.shown)
    seen = {**shown, **{path: path for path in (*boundary.writable, *boundary.readable)}}
    for path, source in sorted(seen.items()):
        # A toolchain may be removed meanwhile; what covers others' files may not be missing.
        is_tool = path in shown and not source.startswith(os.path.dirname(boundary.covers))
        words += ["--bind" if path in boundary.writable else "--ro-bind-try" if is_tool else "--ro-bind", source, path]
    for way, paths in (("--bind", boundary.pinned), ("--ro-bind", boundary.read_only)):
        for path in paths:
            words += [f"{way}-try" if path in boundary.may_be_gone else way, path, path]
    for path in boundary.caches:
        words += ["--bind", boundary.layer[3] if boundary.layer is not None and path == boundary.layer[0] else path, path]
    private = tuple(place for place, _ in boundary.private)
    for path in boundary.hidden:
        if not path.startswith(tuple(f"{place}/" for place in (*private, "/run"))) or any(path.startswith(f"{each}/") for each in seen):
            words += _empty(path) if os.path.isdir(path) else ("--ro-bind", os.path.join(boundary.covers, "file"), path)
    words += ["--seccomp", str(FILTER_FD), "--chdir", directory, "--"]
    return (*words, *_AS_CHILD, *argv)


def _empty(folder: str) -> tuple[str, ...]:
    """A folder of its own in which nothing can be made. bubblewrap reads the list of all mounts again for each bind and each change of
    flags, which takes ten times as long as this."""
    return ("--perms", "0555", "--tmpfs", folder)
