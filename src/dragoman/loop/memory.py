"""Memory files: what the user and the project want every model to know. Found, read, and their imports inserted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from dragoman.base.beneath import is_inside, open_beneath
from dragoman.base.found_files import NotRegularFile, read_opened
from dragoman.loop.surroundings import repository_root
from dragoman.tools.names import escape_name, truncate_path

MEMORY_FILES = ("AGENTS.override.md", "AGENTS.md", "DRAGOMAN.md", "GEMINI.md", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md")
"""In each folder. The first stands in the place of the second, as in Codex."""
MAX_FILE_BYTES = 100_000
MAX_BYTES = 200_000
"""All memory files and imports together."""
MAX_DEPTH = 5
"""Maximum depth of nested imports."""
MAX_IMPORTS = 100
"""Beyond this many, anything that looks like an import is left as text."""

ProblemKind = Literal["missing", "outside", "circle", "too_deep", "too_long", "too_much", "not_text", "no_file", "unreadable"]
WhyNot = ProblemKind | Literal["told"]
"""`told` is no problem: the same text stands elsewhere already."""

_REASONS: dict[WhyNot, str] = {
    "told": "it is told elsewhere",
    "missing": "there is no such file",
    "outside": "it lies outside of what may be read here",
    "circle": "it would go round in a circle",
    "too_deep": f"imports go {MAX_DEPTH} deep",
    "too_long": "it is too long",
    "too_much": "there is too much already",
    "not_text": "it is no text",
    "no_file": "it is no file",
    "unreadable": "it cannot be read",
}
"""What the model reads in place of an import that was not inserted. The user reads the front end's wording."""
_ELSEWHERE = "[told elsewhere: "
_MAX_NAME_CHARS = 1_000
_MAX_LOOKUPS = 1_000
"""How often to check whether `@word` is a file."""


class Problem(msgspec.Struct, frozen=True):
    """A file that is not used."""

    kind: ProblemKind
    path: str
    by: str = ""
    """The file that imports it; empty if it is a memory file itself."""
    detail: str = ""
    """The system's error message, if there is one."""


class Memory(msgspec.Struct, frozen=True):
    """The memory files of a workspace, and what is wrong with them."""

    files: tuple[tuple[str, str], ...] = ()
    """The path of each, and its text with imports inserted."""
    untrusted: tuple[str, ...] = ()
    """The project's files if the project is not trusted: they are not even opened."""
    problems: tuple[Problem, ...] = ()


def load_memory(
    workspace: str,
    user_folder: str = "",
    *,
    trusted: bool,
    root: str = "",
    secret: Sequence[str] = (),
    users: Sequence[str] = (),
    names: Sequence[str] = (),
    is_denied: Callable[[str, os.stat_result], bool] | None = None,
) -> Memory:
    """The user's own memory files, then those from the project's root down to the workspace, if the project is trusted.

    `root`: the highest folder that is trusted; without it, the repository. `users`: files of the user's that lie elsewhere; what lies in
    their folders as Markdown may be imported by a project too, as `@~/.claude/mine.md`. `names`: what memory files are called besides.
    A file that is a link to or a copy of another is included once; one of `secret`, which hold keys, never, nor one that `is_denied`, by
    its real path and status. Never raises.
    """
    workspace = os.path.realpath(workspace)
    root = root or repository_root(workspace) or workspace
    folders = tuple(dict.fromkeys(os.path.realpath(os.path.dirname(path)) for path in users))
    reader = _Reader(workspace, frozenset(map(os.path.realpath, secret)), folders, is_denied)
    own = _existing_files([user_folder]) if user_folder else []
    for path in (*own, *users):
        reader.take(path, os.path.realpath(os.path.dirname(path)), is_users=True)
    of_project = _existing_files(folders_between(root, workspace), names)
    if not trusted:
        return Memory(tuple(reader.files), tuple(map(reader.display_path, of_project)), tuple(reader.problems))
    for path in of_project:
        reader.take(path, root, is_users=False)
    return Memory(tuple(reader.files), (), tuple(reader.problems))


def folders_between(root: str, workspace: str) -> list[str]:
    """The folders whose memory files count, from the root down."""
    inside = os.path.relpath(workspace, root)
    parts = [] if inside == os.curdir else inside.split(os.sep)
    return [os.path.join(root, *parts[:depth]) for depth in range(len(parts) + 1)]


def _existing_files(folders: Sequence[str], names: Sequence[str] = ()) -> list[str]:
    paths = (os.path.join(folder, name) for folder in folders for name in (*MEMORY_FILES, *names))
    found = dict.fromkeys(path for path in paths if os.path.lexists(path))
    replaced = {path.replace(MEMORY_FILES[0], MEMORY_FILES[1]) for path in found if path.endswith(MEMORY_FILES[0])}
    return [path for path in found if path not in replaced]


def find_imports(paths: Sequence[str], root: str) -> list[str]:
    """The files that memory files of a project import, and those these import in turn: whether they may be read is decided later."""
    found: dict[str, None] = {}
    waiting = [(path, 0) for path in paths]
    while waiting and len(found) < MAX_IMPORTS:
        path, depth = waiting.pop()
        try:
            text = _bytes_of(os.path.realpath(path), root).decode("utf-8", "replace")
        except _NotUsed:
            continue
        for _, names in _lines_with_imports(text) if depth <= MAX_DEPTH else ():
            for name in names:
                wanted = os.path.normpath(os.path.join(os.path.dirname(path), name.replace("\\ ", " ")))
                if is_inside(wanted, root) and wanted not in found and os.path.isfile(wanted):
                    found[wanted] = None
                    waiting.append((wanted, depth + 1))
    return list(found)


# --- reading -------------------------------------------------------------------------------------------------------------


class _NotUsed(Exception):
    def __init__(self, kind: WhyNot, detail: str = "") -> None:
        super().__init__(kind)
        self.kind: WhyNot = kind
        self.detail = detail


class _File(msgspec.Struct, frozen=True):
    path: str
    """As it was named: imports are relative to its folder."""
    base: str
    """The folder its imports must be in: the project, or the user's own folder."""
    is_users: bool
    above: tuple[str, ...] = ()
    """The real paths of the files that led here."""

    @property
    def real(self) -> str:
        return os.path.realpath(self.path)


class _Reader:
    def __init__(
        self,
        workspace: str,
        secret: frozenset[str],
        shared: Sequence[str] = (),
        is_denied: Callable[[str, os.stat_result], bool] | None = None,
    ) -> None:
        self._is_denied = is_denied
        self._secret = secret
        self._shared = shared
        """Folders of the user's whose Markdown a project may import."""
        self.files: list[tuple[str, str]] = []
        self.problems: list[Problem] = []
        self._workspace = workspace
        self._seen: set[str] = set()
        """Real paths, and whole texts: neither is included twice."""
        self._left_bytes = MAX_BYTES
        self._left_imports = MAX_IMPORTS
        self._left_lookups = _MAX_LOOKUPS

    def take(self, path: str, base: str, *, is_users: bool) -> None:
        """Read a memory file. The user's own may be a link to anywhere; a project's must stay in the project."""
        file = _File(path, base, is_users)
        try:
            text = self._read(file, os.path.dirname(file.real) if is_users else base)
        except _NotUsed as problem:
            if problem.kind != "told":
                self.problems.append(Problem(problem.kind, self.display_path(path, is_users), detail=problem.detail))
            return
        lines = self._with_imports(file, text)
        if any(line.strip() and not line.startswith(_ELSEWHERE) for line in lines):
            self.files.append((self.display_path(path, is_users), "\n".join(lines)))

    def display_path(self, path: str, is_users: bool = False) -> str:
        return truncate_path(escape_name(path if is_users else os.path.relpath(path, self._workspace)))

    def _read(self, file: _File, base: str) -> str:
        real = file.real
        if real in file.above:
            raise _NotUsed("circle")
        if real in self._secret or (self._is_denied is not None and os.path.exists(real) and self._is_denied(real, os.stat(real))):
            raise _NotUsed("outside")
        if real in self._seen:
            raise _NotUsed("told")
        data = _bytes_of(real, base)
        try:
            text = data.decode("utf-8-sig").strip()
        except UnicodeDecodeError as error:
            raise _NotUsed("not_text") from error
        if text in self._seen:
            raise _NotUsed("told")
        if len(data) > self._left_bytes:
            raise _NotUsed("too_much")
        self._left_bytes -= len(data)
        self._seen |= {real, text}
        return text

    # --- what it imports

    def _with_imports(self, file: _File, text: str) -> list[str]:
        """The imported text follows the line that names it, or replaces it if the line says nothing else."""
        lines: list[str] = []
        for line, names in _lines_with_imports(text):
            put_in = [block for name in names if (block := self._import_lines(file, name))]
            if not put_in or line.strip() != f"@{names[0]}":
                lines.append(line)
            lines += [each for block in put_in for each in block]
        return lines

    def _import_lines(self, file: _File, name: str) -> list[str]:
        """The lines to insert: the imported text, or why it is missing. Empty if it is not an import after all."""
        folder = os.path.dirname(file.path)
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(name) if name.startswith("~/") else name.replace("\\ ", " ")))
        base = self._base_of(file, path, name)
        wanted = _File(path, base, file.is_users or base != file.base, (*file.above, file.real))
        if not self._left_imports or not self._is_import(wanted, name):
            return []
        self._left_imports -= 1
        try:
            if len(wanted.above) > MAX_DEPTH:
                raise _NotUsed("too_deep")
            text = self._read(wanted, base)
        except _NotUsed as problem:
            return [self._failure_line(file, name, problem)]
        shown = self.display_path(path, wanted.is_users)
        return [f"[{shown} says:]", *self._with_imports(wanted, text), f"[end of {shown}]"]

    def _base_of(self, file: _File, path: str, name: str) -> str:
        if file.is_users or not (name.startswith("~/") and path.endswith(".md")):
            return file.base
        return next((each for each in self._shared if is_inside(os.path.realpath(path), each)), file.base)

    def _is_import(self, wanted: _File, name: str) -> bool:
        """`@alice` is not an import unless such a file exists; and whether one exists outside the folder is not revealed."""
        if name.startswith(("./", "../", "~/", "/")) or name.endswith(".md"):
            return True
        self._left_lookups -= 1
        return self._left_lookups >= 0 and is_inside(wanted.real, wanted.base) and os.path.isfile(wanted.real)

    def _failure_line(self, file: _File, name: str, problem: _NotUsed) -> str:
        if problem.kind == "told":
            return f"{_ELSEWHERE}{escape_name(name)}]"
        shown = truncate_path(escape_name(name))
        self.problems.append(Problem(problem.kind, shown, self.display_path(file.path, file.is_users), problem.detail))
        return f"[{shown} is not put in here: {_REASONS[problem.kind]}]"


def _bytes_of(real: str, base: str) -> bytes:
    """A file's bytes, reached without following a link out of `base`. Raises _NotUsed."""
    if not is_inside(real, base):
        raise _NotUsed("outside")
    folder, name = os.path.split(real)
    inside = os.path.relpath(folder, base)
    try:
        with open_beneath(base, [] if inside == os.curdir else inside.split(os.sep)) as directory:
            descriptor = directory.open_for_reading(name)
            try:
                data = read_opened(descriptor, MAX_FILE_BYTES + 1)
            finally:
                os.close(descriptor)
    except FileNotFoundError as error:
        raise _NotUsed("missing") from error
    except (IsADirectoryError, NotRegularFile) as error:
        raise _NotUsed("no_file", error.strerror or str(error)) from error
    except OSError as error:
        raise _NotUsed("unreadable", error.strerror or str(error)) from error
    if len(data) > MAX_FILE_BYTES:
        raise _NotUsed("too_long")
    return data


# --- finding imports -----------------------------------------------------------------------------------------------------


def _lines_with_imports(text: str) -> Iterator[tuple[str, list[str]]]:
    """Every line, with its imports: `@path` after a space or at its beginning, and not in code."""
    fence = ""
    for line in text.split("\n"):
        mark = _fence_of(line)
        if fence:
            yield line, []
            if mark.startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark
            yield line, []
        else:
            yield line, list(_imports_in(line)) if "@" in line else []


def _fence_of(line: str) -> str:
    """The run of ``` or ~~~ that begins or ends a code block; empty if the line has none."""
    inner = line.lstrip(" ")
    if len(line) - len(inner) > 3 or not inner.startswith(("```", "~~~")):
        return ""
    mark = inner[: len(inner) - len(inner.lstrip(inner[0]))]
    return "" if mark[0] == "`" and "`" in inner[len(mark) :] else mark


def _imports_in(line: str) -> Iterator[str]:
    at = 0
    for start, end in [*_code_spans(line), (len(line), len(line))]:
        while (found := line.find("@", at, start)) >= 0:
            at = found + 1
            if found and not line[found - 1].isspace():
                continue
            name = _name_at(line, at, start)
            at += len(name)
            if (name := name.rstrip(".,;:!?)]}'\"")) and len(name) < _MAX_NAME_CHARS and name.isprintable():
                yield name
        at = max(at, end)


def _name_at(line: str, start: int, end: int) -> str:
    """Up to the next space that is not escaped with a backslash."""
    at = start
    while at < end and not line[at].isspace():
        at += 2 if line[at : at + 2] == "\\ " else 1
    return line[start : min(at, end)]


def _code_spans(line: str) -> list[tuple[int, int]]:
    """Where a line is code: between runs of equally many backticks."""
    runs: list[tuple[int, int]] = []
    at = line.find("`")
    while at >= 0:
        end = at
        while line[end : end + 1] == "`":
            end += 1
        runs.append((at, end))
        at = line.find("`", end)
    following: dict[int, int] = {}
    closing = [0] * len(runs)
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        closing[number] = following.get(length, 0)
        following[length] = number
    spans: list[tuple[int, int]] = []
    number = 0
    while number < len(runs):
        if closing[number]:
            spans.append((runs[number][0], runs[closing[number]][1]))
        number = (closing[number] or number) + 1
    return spans
