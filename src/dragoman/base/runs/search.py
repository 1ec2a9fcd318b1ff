"""Collects the files of a project that a command runs. Nothing is run, no link is followed out of the project, and the work is bounded."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found

MAX_ENTRIES = 50_000
"""In all folders that are looked through for one command."""
MAX_JOBS = 300
"""Commands that are read for one: those of its recipes and scripts."""
MAX_TEXT_BYTES = 1_000_000
_MAX_LINKS = 40


def words_of(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())


def options_of(text: str) -> frozenset[str]:
    """The options of these names."""
    return frozenset(f"--{name}" for name in text.split())


CODE = words_of(
    """.py .pyw .pyz .pyi .pyx .js .mjs .cjs .jsx .ts .mts .cts .tsx .sh .bash .zsh .fish .ps1 .bat .cmd .rb .pl .pm .php .phar .lua .r
    .jl .ex .exs .erl .hs .ml .scala .kt .kts .java .jar .class .war .groovy .gradle .clj .cs .fs .vb .csproj .fsproj .vbproj .sln .props
    .targets .dll .exe .so .dylib .node .wasm .go .rs .c .h .cc .cpp .hpp .cxx .zig .nim .d .swift .m .cr .tcl .scm .rkt .awk .vue .svelte
    .mk .cmake .nix"""
)
"""How files end that hold what runs. All others are data, unless they may be executed or are named below."""
MANIFESTS = words_of(
    """package.json deno.json deno.jsonc bunfig.toml go.mod go.work Cargo.toml rust-toolchain rust-toolchain.toml
    Makefile makefile GNUmakefile justfile Justfile .justfile Rakefile Gemfile Dockerfile Containerfile pyproject.toml setup.cfg uv.toml
    pom.xml gradle.properties gradle-wrapper.properties build.sbt dune dune-project stack.yaml mix.exs Procfile Taskfile.yml Taskfile.yaml
    global.json NuGet.config nuget.config WORKSPACE BUILD BUILD.bazel MODULE.bazel .npmrc .yarnrc .yarnrc.yml"""
)
_NOT_OF_THE_PROJECT = frozenset(
    (".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".gradle", ".idea", ".vscode")
)


class ProjectCode(msgspec.Struct, frozen=True):
    """What a command runs of a project."""

    files: tuple[str, ...] = ()
    """Real paths, and the links of the project that lead to them or out of it."""
    unknown: tuple[str, ...] = ()
    """Folders that it is given, and of which nobody knows what it runs."""
    listed: tuple[str, ...] = ()
    """The code in those folders."""
    is_too_much: bool = False
    """There is more in them than we look through: then no yes lasts."""

    @property
    def covered(self) -> tuple[str, ...]:
        """Everything whose change asks anew."""
        return tuple(sorted({*self.files, *self.listed}))


class CommandToRead(msgspec.Struct, frozen=True):
    """A command that is still to be read."""

    words: tuple[str, ...]
    directory: str
    is_named: bool = True
    """Whether the user was shown it: a line of a recipe is not, and what is not known of it is not told."""
    bins: tuple[str, ...] = ()
    """Folders that are looked through for its program before the user's own."""


class Search:
    """What was found by now, and what is still to be read."""

    def __init__(self, project: str, env: Mapping[str, str] | None = None) -> None:
        self.project = os.path.realpath(project)
        self.env = dict(env or {})
        self.jobs: deque[CommandToRead] = deque()
        self._begun: set[tuple[object, ...]] = set()
        self._places: set[str] = set()
        self._unknown: dict[str, None] = {}
        self._listed: set[str] = set()
        self._left_entries = MAX_ENTRIES
        self._is_too_much = False

    def then(self, words: Sequence[str], directory: str, *, is_named: bool = True, bins: Sequence[str] = ()) -> None:
        """Read this command later, once."""
        job = CommandToRead(tuple(words), directory, is_named, tuple(bins))
        key = (job.words, job.directory)
        if words and key not in self._begun and len(self._begun) < MAX_JOBS:
            self._begun.add(key)
            self.jobs.append(job)

    def is_of_project(self, path: str) -> bool:
        return is_inside(os.path.realpath(path), self.project)

    def take(self, path: str) -> bool:
        """Add a file, and the project's links on the way to it. Returns whether there is such a file."""
        found, is_file = _trace(path, self.project)
        self._places |= found
        return is_file

    def take_all(self, folder: str, names: Iterable[str]) -> list[str]:
        """Add those of these files that a folder has, and return them."""
        return [path for name in names if self.take(path := os.path.join(folder, name))]

    def take_code(self, folder: str, *, without: frozenset[str] = frozenset(), ends: Iterable[str] = ()) -> None:
        """Add all the code of a folder of the project, those of its folders too."""
        self._places |= self._code_of(folder, without, frozenset(ends) or CODE)

    def take_unknown(self, path: str) -> None:
        """Say that nobody knows what is run of a folder or file that a command is given."""
        real = os.path.realpath(path)
        if not is_inside(real, self.project) or real in self._unknown:
            return
        self._unknown[real] = None
        if os.path.isdir(real):
            self._listed |= self._code_of(real, frozenset(), CODE)
        else:
            kind = os.path.splitext(real)[1].lower() or os.path.basename(real)
            self._listed |= self._code_of(os.path.dirname(real), frozenset(), CODE | {kind})

    def names_in(self, folder: str, start: str = "", ends: tuple[str, ...] = ("",)) -> list[str]:
        """The paths in a folder whose names begin and end so, in order."""
        try:
            names = sorted(os.listdir(folder))[:MAX_ENTRIES]
        except OSError:
            return []
        return [os.path.join(folder, name) for name in names if name.startswith(start) and name.endswith(ends)]

    def read(self, path: str) -> str:
        """The text of a file of the project that was taken; empty if it cannot be read."""
        if not self.is_of_project(path):
            return ""
        try:
            return read_found(path, MAX_TEXT_BYTES, cut=True).decode("utf-8", "replace")
        except OSError:
            return ""

    def found(self) -> ProjectCode:
        return ProjectCode(tuple(sorted(self._places)), tuple(self._unknown), tuple(sorted(self._listed)), self._is_too_much)

    def _code_of(self, folder: str, without: frozenset[str], ends: frozenset[str]) -> set[str]:
        found: set[str] = set()
        waiting = [os.path.realpath(folder)] if self.is_of_project(folder) else []
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        self._left_entries -= 1
                        if self._left_entries < 0:
                            self._is_too_much = True
                            return found
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name not in _NOT_OF_THE_PROJECT and entry.name not in without:
                                waiting.append(entry.path)
                        elif _is_code(entry, ends):
                            found |= _trace(entry.path, self.project)[0]
            except OSError:
                continue
        return found


def is_code(path: str) -> bool:
    """Whether a file's name or mode says that it is run, or configures what is."""
    name = os.path.basename(path)
    return os.path.splitext(name)[1].lower() in CODE or name in MANIFESTS or os.access(path, os.X_OK)


def _is_code(entry: os.DirEntry[str], ends: frozenset[str]) -> bool:
    if os.path.splitext(entry.name)[1].lower() in ends or entry.name in MANIFESTS or entry.name in ends:
        return True
    try:
        return bool(entry.stat(follow_symlinks=False).st_mode & 0o111) and not entry.is_symlink()
    except OSError:
        return False


def _trace(path: str, project: str) -> tuple[set[str], bool]:
    """The links of the project on the way to a file, and the file itself if it lies there; and whether there is a file at the end. The path
    is absolute."""
    found: set[str] = set()
    at, parts = os.path.splitdrive(path)[0] + os.sep, _parts(path)[::-1]
    links = 0
    while parts and links < _MAX_LINKS:
        part = parts.pop()
        if part == os.pardir:
            at = os.path.dirname(at)
            continue
        place = os.path.join(at, part)
        try:
            target = os.readlink(place)
        except (OSError, ValueError):
            at = place
            continue
        links += 1
        if is_inside(place, project):
            found.add(place)
        at = os.sep if os.path.isabs(target) else at
        parts.extend(reversed(_parts(target)))
    try:
        mode = os.lstat(at).st_mode
    except (OSError, ValueError):
        return set(), False
    if stat.S_ISDIR(mode):
        return set(), False
    if is_inside(at, project):
        found.add(at)
    return found, stat.S_ISREG(mode)


def _parts(path: str) -> list[str]:
    return [part for part in os.path.splitdrive(path)[1].split(os.sep) if part not in ("", os.curdir)]
