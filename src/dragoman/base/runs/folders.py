"""What is run by programs that are given a folder: they build and run the code in it, or read how to from files of a fixed name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from dragoman.base.runs.interpreters import folders_up, read_options, read_script
from dragoman.base.runs.search import CommandToRead, Search, is_code

_GO_VALUES = ("-C", "-exec", "-mod", "-modfile", "-overlay", "-ldflags", "-tags", "-gcflags", "-o", "-p", "-toolexec", "-pkgdir")
_COMPOSE = re.compile(r"(?:docker-)?compose[\w.-]*\.ya?ml")
_DOCKER_FILES = re.compile(r"(?:Dockerfile|Containerfile)(?:\..*)?|.*\.[Dd]ockerfile")
_BUILT = frozenset(("target", "bin", "obj", "build", "dist", "out", "_build", ".cargo-cache"))


def read_go(search: Search, job: CommandToRead) -> None:
    """`go run ./cmd`, `go run main.go`: the folder's code and the module around it. `go run tool@v1` runs none of the project."""
    directory, words = job.directory, list(job.words[1:])
    if words[:1] == ["-C"] and len(words) > 1:
        directory, words = os.path.join(directory, words[1]), words[2:]
    if words[:1] != ["run"]:
        return _build(search, directory)
    at = 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] in _GO_VALUES and at + 1 < len(words):
            search.take(os.path.join(directory, words[at + 1]))
            at += 1
        at += 1
    for word in words[at:]:
        path = os.path.join(directory, word)
        if word.endswith(".go") and search.take(path):
            continue
        if os.path.isdir(path):
            search.take_code(path)
        elif "@" not in word:
            search.take_code(directory)  # a package by its import path: some folder of the module
        break
    for folder in folders_up(search, directory):
        search.take_all(folder, ("go.mod", "go.work"))


def read_cargo(search: Search, job: CommandToRead) -> None:
    """`cargo run`: the package's manifest, build script and sources. `cargo xtask` and others build it too."""
    words = [word for word in job.words[1:] if not word.startswith("+")]
    named = _value_of(words, "--manifest-path")
    start = os.path.dirname(os.path.join(job.directory, named)) if named else os.path.join(job.directory, _value_of(words, "-C"))
    package = ""
    for folder in folders_up(search, start):
        if search.take(os.path.join(folder, "Cargo.toml")):  # not Cargo.lock: the first run writes it
            package = package or folder
        search.take_all(folder, (".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml"))
    if package:
        search.take_code(package, without=_BUILT)


def read_dotnet(search: Search, job: CommandToRead) -> None:
    """`dotnet run`, `dotnet watch`: the project's code. `dotnet x.dll`: that file."""
    words = job.words[1:]
    if (words and words[0].endswith((".dll", ".exe"))) or words[:1] == ("exec",):
        return read_script(search, job)
    named = _value_of(words, "--project") or _value_of(words, "-p") or _value_of(words, "--file")
    path = os.path.join(job.directory, named)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    search.take_code(folder, without=_BUILT)
    search.take_all(folder, ("Properties/launchSettings.json", "appsettings.json"))
    for above in folders_up(search, folder):
        search.take_all(above, ("Directory.Build.props", "Directory.Build.targets", "global.json", "NuGet.config", "nuget.config"))


def read_built(search: Search, job: CommandToRead) -> None:
    """Any other program that builds the folder it is started in and runs the result."""
    _build(search, job.directory)


def _build(search: Search, directory: str) -> None:
    search.take_code(directory, without=_BUILT)


# --- containers


def read_docker(search: Search, job: CommandToRead) -> None:
    """`docker compose up`: its files, and the Dockerfiles and code they name. `docker run -v ./tools:/t image /t/server.py`: that file."""
    options, words = _skip_docker_options(job.words[1:])
    if words[:1] == ["compose"]:
        read_compose(search, CommandToRead(("docker-compose", *words[1:]), job.directory, job.is_named))
    elif words[:1] == ["run"] or words[:2] == ["container", "run"]:
        _read_container(search, words, job.directory)
    elif words[:1] == ["build"] or options:
        for word in words[1:]:
            _take_context(search, os.path.join(job.directory, word))


def _skip_docker_options(words: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    valued = frozenset(("--config", "--context", "--host", "--log-level"))
    return read_options(words, "cHl", valued)


def _read_container(search: Search, words: Sequence[str], directory: str) -> None:
    mounts: list[tuple[str, str]] = []
    for before, word in zip(("", *words), words, strict=False):
        value = (
            word
            if before in ("-v", "--volume", "--mount")
            else word.partition("=")[2]
            if word.startswith(("--volume=", "--mount="))
            else ""
        )
        if before == "--env-file":
            search.take(os.path.join(directory, word))
        fields: dict[str, str] = {}
        for key, sign, field in (part.partition("=") for part in value.split(",")) if "source=" in value or "src=" in value else ():
            fields |= {key: field} if sign else {}
        host, inside = fields.get("source") or fields.get("src", ""), fields.get("target") or fields.get("dst", "")
        if not fields and value.count(":"):
            host, inside = value.split(":")[:2]
        if host and inside:
            mounts.append((os.path.join(directory, os.path.expanduser(host)), inside.rstrip("/") or "/"))
    workdir = _value_of(words, "-w") or _value_of(words, "--workdir") or "/"
    for host, inside in mounts:
        search.take(host) if is_code(host) else None
        for word in words:
            for path in (word, os.path.join(workdir, word)):
                if path == inside or path.startswith(f"{inside.rstrip('/')}/"):
                    search.take(os.path.join(host, path[len(inside) :].lstrip("/")))


def read_compose(search: Search, job: CommandToRead) -> None:
    words = job.words[1:]
    folder = os.path.join(job.directory, _value_of(words, "--project-directory"))
    named = [os.path.join(job.directory, value) for value in _values_of(words, "-f", "--file")]
    around = (path for at in folders_up(search, folder) for path in search.names_in(at, "", (".yaml", ".yml")))
    files = named or [path for path in around if _COMPOSE.fullmatch(os.path.basename(path))]
    _take_context(search, folder)
    search.take_all(folder, (".env",))
    for path in files:
        if search.take(path):
            _take_named(search, search.read(path), os.path.dirname(path))


def _take_context(search: Search, folder: str) -> None:
    """The Dockerfiles of a folder that images are built of, and the code that they name."""
    for path in search.names_in(folder):
        if _DOCKER_FILES.fullmatch(os.path.basename(path)) and search.take(path):
            _take_named(search, search.read(path), folder)


def _take_named(search: Search, text: str, folder: str) -> None:
    """The code that a compose file or a Dockerfile names, and of folders beneath its own all the code: they are copied or mounted."""
    for piece in dict.fromkeys(re.split(r"""[\s:,'"\[\]{}=]+""", text)):
        path = os.path.normpath(os.path.join(folder, os.path.expanduser(piece))) if piece and "\0" not in piece else folder
        if path == os.path.normpath(folder) or not search.is_of_project(path):
            continue
        if os.path.isdir(path):
            if not os.path.isabs(piece) and os.path.normpath(folder).startswith(f"{path}{os.sep}") is False:
                _take_context(search, path)
                search.take_code(path)
        elif is_code(path) or _DOCKER_FILES.fullmatch(os.path.basename(path)) or piece.endswith((".env", ".yml", ".yaml")):
            search.take(path)


def _value_of(words: Sequence[str], name: str) -> str:
    return next(iter(_values_of(words, name)), "")


def _values_of(words: Sequence[str], *names: str) -> list[str]:
    found: list[str] = []
    for before, word in zip(("", *words), words, strict=False):
        if before in names:
            found.append(word)
        found += [word[len(name) + 1 :] for name in names if word.startswith(f"{name}=")]
    return found
