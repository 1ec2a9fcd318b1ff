"""What the program runs, file by file: a folder for PYTHONPATH with which every interpreter tells which of our files it runs.

A file counts once one of its functions ran, not when it was loaded: what is loaded and not called is no part of a walk.
"""

from __future__ import annotations

from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "dragoman"
_TELLING = """
import os, sys, threading
def tell(beginning, where):
    seen, out = set(), os.open(where, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    def profile(frame, event, argument):
        code = frame.f_code
        if code.co_filename not in seen and code.co_flags & 1 and code.co_filename.startswith(beginning):  # 1: neither a module nor a class
            seen.add(code.co_filename)
            os.write(out, (code.co_filename[len(beginning):] + "\\n").encode())
    sys.setprofile(profile)
    threading.setprofile(profile)
tell({beginning!r}, {where!r})
"""


class Trace:
    """The files that ran, of all programs that were started with this environment."""

    def __init__(self, folder: Path) -> None:
        self._told = folder / "ran.txt"
        self._told.touch()
        code = _TELLING.replace("{beginning!r}", repr(f"{SOURCE}/")).replace("{where!r}", repr(str(self._told)))
        (folder / "sitecustomize.py").write_text(code, encoding="utf-8")
        self.env = {"PYTHONPATH": str(folder)}

    @property
    def files(self) -> list[str]:
        """In the order in which they first ran."""
        return list(dict.fromkeys(self._told.read_text(encoding="utf-8").split()))
