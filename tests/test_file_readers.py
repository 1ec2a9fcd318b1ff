"""Files are read through one door (`base/found_files.py`). The rule is kept by reading the source, not by running it.

A folder, a repository, an archive or a command may have put a pipe, a device or a file of any size where a file is looked for. Whoever
opens such a file by another way than the door waits for ever or fills the memory. Modules that open files by themselves are listed here
with the reason why nobody else can have prepared those files.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "dragoman"

OWN = {
    "base/found_files.py": "the door itself",
    "base/beneath.py": "directories, and files that are made anew; files are read through the door",
    "base/mounts.py": "the kernel's table of mounts",
    "base/private.py": "our own files, which no link leads to: regular files alone, and nothing waits",
    "base/lock.py": "lock files in our own folders, and the kernel's list of locks",
    "base/saved_lines.py": "appends to our own file; it is read through the door",
    "base/processes.py": "the kernel's files about processes",
    "mcp_client/leftovers.py": "the kernel's files about processes",
    "providers/catalog.py": "data of the package",
    "loop/typed_answer.py": "no file: a method of ours that reads an answer's text",
    "loop/compression.py": "data of the package",
    "loop/configuring.py": "data of the package",
    "text_tools/examples.py": "data of the package",
    "tools/description.py": "data of the package",
    "tools/streams.py": "the null device",
    "app/printing.py": "the null device",
    "cli/startup.py": "the null device",
    "plain/screen.py": "the terminal we were started in",
    "tui/terminal.py": "the terminal we were started in",
    "conversation/editor.py": "writes into a private folder that was just made; what the editor left is read through the door",
    "conversation/line_editor.py": "a program of its own that reads the file it is started for, in a private folder that was just made",
    "conversation/session_page/assets.py": "data of the package",
    "viewer/socket_owners.py": "the kernel's table of sockets",
    "sessions/index.py": "our own database",
    "sessions/sqlite/*.py": "our own databases and their locks",
    "sessions/leftovers.py": "appends to our own list",
    "testing/*.py": "doubles for tests: files that a test names",
    "testing/mock/*.py": "doubles for tests: files that a test names",
    "local/engine.py": "weights that the user has fetched, and the kernel's file about processors",
    "local/weights/*.py": "weights, in our own folder",
    "acp/door.py": "the null device",
    "policy/sandbox/launching.py": "the null device",
    "policy/sandbox/caretaker.py": "the null device",
    "policy/sandbox/cache_removal.py": "folders alone, without following a link",
    "policy/sandbox/caches.py": "a lock of our own, without following a link or waiting",
    "policy/sandbox/view.py": "makes a file in a folder that was just made",
    "policy/sandbox/refusals.py": "the kernel's table of sockets",
    "policy/sandbox/private_folder.py": "makes a file in a folder that was just made",
    "fleet/archives.py": "an archive that the user names",
    "fleet/command.py": "the tasks that the user names, and standard input: they may be a pipe",
    "fleet/ending.py": "the kernel's files about processes",
    "fleet/folder.py": "writes its own list of tasks, through fleet/files.py",
    "fleet/ray_node.py": "makes files in a folder that was just made",
    "fleet/ray_tree.py": "opens the user's workspace by descriptor, without following a link, as workspace.py does",
    "fleet/own_wheel.py": "the files of our own package, and an archive that is made of them",
    "fleet/limiter_socket.py": "a folder of our own, for the path of a socket in it",
    "fleet/workspace.py": "copies regular files alone, without following a link or waiting",
    "policy/sandbox/launcher/*.py": "a program inside the boundary; it follows no link and waits for nothing",
}
"""Modules that open files by themselves, by their path, and why they may."""
OPENED_BY_THE_DOOR = {"open_found", "open_file", "open_for_reading"}
"""What returns a descriptor that was checked: `open` only wraps it."""
MODULES_THAT_OPEN = {
    "codecs": {"open"},
    "fileinput": {"input", "FileInput"},
    "io": {"open", "open_code", "FileIO"},
    "json": {"load"},
    "linecache": {"getline", "getlines"},
    "mmap": {"mmap"},
    "os": {"open", "sendfile", "copy_file_range"},
    "pickle": {"load"},
    "runpy": {"run_path"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "unpack_archive"},
    "sqlite3": {"connect"},
    "tarfile": {"open", "TarFile"},
    "tomllib": {"load"},
    "zipfile": {"ZipFile"},
    "gzip": {"open"},
}
_MODE = re.compile(r"[rwax][bt+]*\Z")


def test_every_reader_of_files_uses_the_door() -> None:
    openings = openings_by_module().items()
    strange = [f"{name}:{line}: {call}" for name, calls in openings for line, call in calls if not is_listed(name)]
    assert not strange, "read these through dragoman.base.found_files, or list the module with its reason:\n" + "\n".join(strange)


def test_every_module_that_is_listed_still_opens_files() -> None:
    opening = [name for name, calls in openings_by_module().items() if calls]
    unused = [pattern for pattern in OWN if not any(fnmatchcase(name, pattern) for name in opening)]
    assert not unused, "these open nothing by themselves any more"


@pytest.mark.parametrize(
    "code",
    [
        "open(path)",
        "open(path, 'rb')",
        "open(os.path.join(folder, name))",
        "io.open(path)",
        "from io import open as look\nlook(path)",
        "os.open(path, os.O_RDONLY)",
        "from os import open as opened\nopened(path, 0)",
        "import os as system\nsystem.open(path, 0)",
        "path.read_text()",
        "path.read_text(encoding='utf-8')",
        "Path(name).read_bytes()",
        "Path(name).open()",
        "path.open('rb')",
        "path.open(mode='r')",
        "path.open(encoding='utf-8')",
        "mmap.mmap(descriptor, 0)",
        "tomllib.load(file)",
        "shutil.copyfile(one, other)",
        "await asyncio.to_thread(open, path)",
        "map(os.open, paths)",
        "read = path.read_bytes",
    ],
)
def test_a_reader_that_passes_the_door_by_is_found(code: str) -> None:
    assert list(find_openings(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "open(open_found(path), 'rb')",
        "open(directory.open_for_reading(name), 'rb')",
        "read_found(path, 10)",
        "self.terminal.open()",
        "store.open(path)",
        "read_text(path, 10)",
        "os.path.isfile(path)",
        "tomllib.loads(text)",
    ],
)
def test_what_reads_no_file_by_itself_is_not_found(code: str) -> None:
    assert not list(find_openings(ast.parse(code)))


@cache
def openings_by_module() -> dict[str, list[tuple[int, str]]]:
    trees = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    return {name: list(find_openings(tree)) for name, tree in trees.items()}


def is_listed(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in OWN)


def find_openings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every place that opens or reads a file by itself: the line, and the code."""
    spelled = names_of_openers(tree)
    wrapped = {
        call.func for call in ast.walk(tree) if isinstance(call, ast.Call) and call.args and name_of(call.args[0]) in OPENED_BY_THE_DOOR
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in spelled and node not in wrapped:
            yield node.lineno, node.id
        elif is_opening_attribute(node, spelled) or opens_path(node):
            yield node.lineno, ast.unparse(node)


def names_of_openers(tree: ast.Module) -> set[str]:
    """`open`, what is imported by name (`from os import open`), and modules under another name (as `name.open`)."""
    found = {"open"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES_THAT_OPEN:
            opening = MODULES_THAT_OPEN[node.module]
            found |= {alias.asname or alias.name for alias in node.names if alias.name in opening}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found |= {f"{alias.asname or alias.name}.{name}" for name in MODULES_THAT_OPEN.get(alias.name, ())}
    return found | {f"{module}.{name}" for module, names in MODULES_THAT_OPEN.items() for name in names}


def is_opening_attribute(node: ast.AST, spelled: set[str]) -> bool:
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr in ("read_text", "read_bytes") or (isinstance(node.value, ast.Name) and f"{node.value.id}.{node.attr}" in spelled)


def opens_path(call: ast.AST) -> bool:
    """Whether `something.open(…)` is a path's, as far as that can be told: by the mode, by the words, or because a Path is made there."""
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "open":
        return False
    first = call.args[0] if call.args else None
    has_mode = isinstance(first, ast.Constant) and isinstance(first.value, str) and _MODE.match(first.value) is not None
    return (
        has_mode
        or any(word.arg in ("mode", "encoding", "buffering", "newline") for word in call.keywords)
        or name_of(call.func.value) == "Path"
    )


def name_of(node: ast.expr) -> str:
    """The name of what is called, without what stands before it."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
