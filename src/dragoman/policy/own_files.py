"""Our own files: configuration, saved approvals, keys, logs and caches. Writing them decides what runs, or is trusted, later.

So a tool never writes them unasked, in whatever mode, and wherever they lie: in the workspace (a home directory, a repository of
dotfiles), under another name, or behind a link.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from dragoman.base.beneath import is_inside
from dragoman.base.places import Places


class OwnFiles:
    """Where our files are. Links are resolved anew at every question: they may change while a session goes on."""

    def __init__(self, places: Sequence[Places], further: Iterable[str] = (), *, workspace: str = "") -> None:
        """`further`: other files and folders that count, as a configuration file that the user named."""
        self._places = tuple(dict.fromkeys(places))
        self._further = tuple(dict.fromkeys(path for path in further if path))
        self._workspace = os.path.realpath(workspace) if workspace else ""

    def hold(self, path: str) -> bool:
        """Whether an absolute path with its links resolved is one of our files, or in one of our folders."""
        ours = tuple(dict.fromkeys(self._all()))
        folded = _fold(path)
        return any(is_inside(folded, _fold(each)) for each in ours) or _is_same_place(path, ours)

    def _all(self) -> Iterator[str]:
        for places in self._places:
            yield from map(os.path.realpath, places.named_files)
            for folder in (places.config, places.data, places.cache):
                yield from self._in_folder(folder, is_config=folder == places.config)
        yield from map(os.path.realpath, self._further)

    def _in_folder(self, folder: str, *, is_config: bool) -> Iterator[str]:
        """The folder, and where the links in it lead: dotfiles are often kept elsewhere and linked one by one."""
        real = os.path.realpath(folder)
        if is_config and self._workspace and is_inside(self._workspace, real):
            return  # DRAGOMAN_HOME is a folder around the workspace: what lies in it is not all ours
        yield real
        try:
            with os.scandir(real) as entries:
                for entry in entries:
                    if entry.is_symlink() and not entry.is_dir():
                        yield os.path.realpath(entry.path)
        except OSError:
            pass  # it is not there yet, or not readable


def secret_places(places: Places, workspace: str) -> tuple[str, ...]:
    """What of ours no command reads unasked. A folder of ours around the workspace does not count as a whole: what lies in it is not all
    ours."""
    real = os.path.realpath(workspace)
    folders = [os.path.realpath(folder) for folder in (places.config, places.data, places.cache)]
    files = [os.path.realpath(file) for file in (*places.secret_files, places.grants_file, places.sessions)]
    return tuple(dict.fromkeys([*(folder for folder in folders if not is_inside(real, folder)), *files]))


def _fold(path: str) -> str:
    """For comparing names where the file system may not tell upper case from lower, or one way to write an accent from another."""
    if path.isascii():
        return path.lower()
    import unicodedata

    return unicodedata.normalize("NFC", path).casefold()


def _is_same_place(path: str, ours: Sequence[str]) -> bool:
    """Whether the path, or a folder above it, is one of ours under another name, as through a bind mount."""
    known = {identity for each in ours if (identity := _identity(each))}
    while known:
        if _identity(path) in known:
            return True
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return False


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None
