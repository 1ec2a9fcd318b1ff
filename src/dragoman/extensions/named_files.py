"""The project files that a command names, and their hash: approving a command approves what it runs, as it is now.

What those files load in turn is not followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import pairwise

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import open_found

_CHUNK = 1024 * 1024
_MOST_HASHED = 256 * _CHUNK
_ENTRIES = ("package.json", "index.js", "index.mjs", "index.ts", "__main__.py", "pyproject.toml", "Cargo.toml")
"""What programs run of a folder that they are given."""
_SCRIPTS = (
    *(".py", ".pyz", ".js", ".mjs", ".cjs", ".ts", ".mts", ".sh", ".bash", ".rb"),
    *(".pl", ".php", ".lua", ".jar", ".so", ".dll", ".wasm"),
)
_IMPLIED = {
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun", "bunx", "deno"), ("package.json", "deno.json")),
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    **dict.fromkeys(("uv", "uvx", "poetry", "hatch", "pdm"), ("pyproject.toml",)),
    **dict.fromkeys(("just",), ("justfile", "Justfile", ".justfile")),
    **dict.fromkeys(("cargo",), ("Cargo.toml", "build.rs")),
}
"""Files that programs read from the folder they are started in, by themselves."""


def named_files(words: Sequence[str], directory: str, project: str) -> list[str]:
    """The real paths of the project's files that a command names, started in `directory`; of folders, what is run of them."""
    pieces = _pieces(words)
    folders = [directory, *(path for piece in pieces if os.path.isdir(path := os.path.join(directory, os.path.expanduser(piece))))]
    paths = [os.path.join(folder, os.path.expanduser(piece)) for folder in dict.fromkeys(folders) for piece in pieces]
    paths += [os.path.join(folder, name) for folder in folders[1:] for name in _ENTRIES]
    paths += [os.path.join(folder, name) for folder in folders for name in _implied(words)]
    return _of_project(paths, project)


def named_programs(words: Sequence[str], directory: str, project: str) -> list[str]:
    """Only the files that the command seems to run: for commands the user wrote, which may name data files too."""
    found = _of_project([os.path.join(directory, os.path.expanduser(piece)) for piece in _pieces(words)], project)
    return [path for path in found if path.lower().endswith(_SCRIPTS) or os.access(path, os.X_OK)]


def _pieces(words: Sequence[str]) -> list[str]:
    return [piece for word in words for piece in (word, *_parts(word)) if piece and "\0" not in piece]


def _of_project(paths: Iterable[str], project: str) -> list[str]:
    real = os.path.realpath(project)
    return sorted({found for path in paths if os.path.isfile(found := os.path.realpath(path)) and is_inside(found, real)})


def hash_files(paths: Iterable[str], project: str) -> str:
    """A hash of the files' names in the project and their contents; empty if there are none."""
    made = sha256()
    count = 0
    for path in paths:
        name = os.path.relpath(path, os.path.realpath(project)).encode("utf-8", "surrogateescape")
        made.update(b"\0" + name + b"\0" + _content(path))
        count += 1
    return made.hexdigest() if count else ""


def _parts(word: str) -> Iterator[str]:
    """`--config=tools/x.json`, `cd tools && ./run`, `PATH=bin:/usr/bin`."""
    for sign in "=;&|:,()<>\"'`":
        word = word.replace(sign, " ")
    yield from word.split()


def _implied(words: Sequence[str]) -> Iterator[str]:
    """Files that are read because of the program that is started, and modules that Python is asked to run (-m)."""
    pieces = [piece for word in words for piece in word.split()]
    for piece in pieces:
        yield from _IMPLIED.get(os.path.basename(piece), ())
    for before, after in pairwise(pieces):
        if before == "-m":
            module = after.replace(".", os.sep)
            yield from (f"{module}.py", os.path.join(module, "__main__.py"), os.path.join(module, "__init__.py"))


def _content(path: str) -> bytes:
    made, size = sha256(), 0
    try:
        with open(open_found(path), "rb", buffering=0) as file:
            while size < _MOST_HASHED and (chunk := file.read(_CHUNK)):
                made.update(chunk)
                size += len(chunk)
            if size >= _MOST_HASHED:  # what is behind it is known by the file's size and times alone
                status = os.fstat(file.fileno())
                made.update(f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}".encode())
    except OSError as error:
        return f"unreadable {error.errno}".encode()
    return made.digest() + size.to_bytes(8, "big")
