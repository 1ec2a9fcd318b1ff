"""macOS: the profile for `sandbox-exec`. Its text is tested, but it has not been run on macOS yet."""

from __future__ import annotations

from collections.abc import Sequence

PROGRAM = "/usr/bin/sandbox-exec"
_HEAD = """(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger"))
(allow file-read*)
(allow file-ioctl (literal "/dev/tty") (literal "/dev/dtracehelper"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
"""
_NO_NETWORK = "(deny network*)\n"


def profile(writable: Sequence[str], read_only: Sequence[str], hidden: Sequence[str], *, pinned: Sequence[str] = ()) -> str:
    """Later rules win: what is read-only inside what is writable stands after it, and what is hidden last. `pinned`: folders that stay
    where they are, since rules go by path."""
    text = _HEAD + _NO_NETWORK
    for path in writable:
        text += f"(allow file-write* (subpath {_quote(path)}))\n"
    for path in pinned:
        text += f"(deny file-write-unlink (literal {_quote(path)}))\n"
    for path in read_only:
        text += f"(deny file-write* (subpath {_quote(path)}))\n"
    for path in hidden:
        text += f"(deny file-read* file-write* (subpath {_quote(path)}))\n"
    return text


def wrap(argv: Sequence[str], text: str, program: str = PROGRAM) -> tuple[str, ...]:
    return (program, "-p", text, *argv)


def _quote(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
