"""The project's files that a command names or runs, and their hash: approving a command approves what it runs, as it is now.

What the files of code load in turn is not followed, but for scripts of a shell and recipes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

import msgspec

from dragoman.base.found_files import open_found
from dragoman.base.runs.launchers import find_code
from dragoman.base.runs.search import ProjectCode, Search, is_code

_CHUNK = 1024 * 1024
MAX_FILE_BYTES = 64 * _CHUNK
"""Of a larger file its size and its times count."""
MAX_BYTES = 256 * _CHUNK
"""Of all files together; past that, sizes and times."""


def code_of(
    words: Sequence[str],
    directory: str,
    project: str,
    env: Mapping[str, str] | None = None,
    *,
    is_line: bool = False,
    is_users: bool = False,
) -> ProjectCode:
    """What a command runs of the project, started in `directory`, and every file of it that the command names.

    `is_line`: its one word is a line for a shell. `is_users`: the user wrote it, and may name data and folders: only what it is known to
    run counts.
    """
    env = env or {}
    found = find_code(words, directory, project, {"PATH": os.environ.get("PATH", ""), **env}, is_line=is_line)
    named = Search(project)
    for path in _named_paths([*words, *env.values()], directory):
        if not is_users or (is_code(path) and named.is_of_project(path)):
            named.take(path)
    files = tuple(sorted({*found.files, *named.found().files}))
    return ProjectCode(files) if is_users else msgspec.structs.replace(found, files=files)


def _named_paths(words: Sequence[str], directory: str) -> Iterator[str]:
    pieces = dict.fromkeys(piece for word in words for piece in (word, *_parts(word)) if piece and "\0" not in piece)
    paths = {piece: os.path.join(directory, os.path.expanduser(piece)) for piece in pieces}
    yield from paths.values()
    for folder in (path for path in paths.values() if os.path.isdir(path)):
        yield from (os.path.join(folder, piece) for piece in pieces)


def hash_code(code: ProjectCode, project: str) -> str:
    """A hash of what a command runs, as it is now; empty if it runs nothing of the project."""
    if code.is_too_much:
        return f"too much {os.urandom(8).hex()}"  # never the same: what was not looked at may have changed
    return hash_files(code.covered, project)


def hash_files(paths: Iterable[str], project: str) -> str:
    """A hash of the files' names in the project and their contents, and where links lead; empty if there are none."""
    made = sha256()
    count = 0
    left = MAX_BYTES
    for path in paths:
        name = os.path.relpath(path, os.path.realpath(project)).encode("utf-8", "surrogateescape")
        content, size = _content(path, left)
        made.update(b"\0" + name + b"\0" + content)
        count += 1
        left -= size
    return made.hexdigest() if count else ""


def _parts(word: str) -> Iterator[str]:
    """`--config=tools/x.json`, `cd tools && ./run`, `PATH=bin:/usr/bin`."""
    for sign in "=;&|:,()<>\"'`":
        word = word.replace(sign, " ")
    yield from word.split()


def _content(path: str, left: int) -> tuple[bytes, int]:
    """What a file holds, hashed, and how much of it was read."""
    made, size = sha256(), 0
    try:
        if os.path.islink(path):
            return b"-> " + os.fsencode(os.readlink(path)), 0
        with open(open_found(path, follow=False), "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if status.st_size > min(left, MAX_FILE_BYTES):
                return f"large {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}".encode(), 0
            while size <= status.st_size and (chunk := file.read(_CHUNK)):
                made.update(chunk)
                size += len(chunk)
    except OSError as error:
        return f"unreadable {error.errno}".encode(), 0
    return made.digest() + size.to_bytes(8, "big"), size
