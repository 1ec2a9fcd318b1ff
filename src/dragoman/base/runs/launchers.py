"""Which program a command starts, and what that runs of the project."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from dragoman.base.runs.folders import read_built, read_cargo, read_compose, read_docker, read_dotnet, read_go
from dragoman.base.runs.interpreters import (
    Reader,
    read_bun,
    read_deno,
    read_java,
    read_node,
    read_options,
    read_perl,
    read_php,
    read_python,
    read_ruby,
    read_script,
    take_entry,
    take_module,
)
from dragoman.base.runs.recipes import read_make, read_npm, read_npx, read_python_runner, read_recipe_text, read_tasks
from dragoman.base.runs.search import CommandToRead, ProjectCode, Search, is_code, words_of
from dragoman.base.runs.shell_lines import commands_in

_WRAPPERS: dict[str, tuple[str, frozenset[str], int]] = {
    "nohup": ("", frozenset(), 0),
    "setsid": ("", frozenset(), 0),
    "exec": ("a", frozenset(), 0),
    "command": ("", frozenset(), 0),
    "builtin": ("", frozenset(), 0),
    "time": ("fo", frozenset(), 0),
    "nice": ("n", frozenset(("--adjustment",)), 0),
    "ionice": ("cnp", frozenset(), 0),
    "chrt": ("", frozenset(), 1),
    "taskset": ("", frozenset(), 1),
    "timeout": ("ks", frozenset(("--kill-after", "--signal")), 1),
    "stdbuf": ("ioe", frozenset(), 0),
    "unbuffer": ("", frozenset(), 0),
    "sudo": ("ugCDhpRTU", frozenset(("--user", "--group", "--chdir")), 0),
    "doas": ("uC", frozenset(), 0),
    "xvfb-run": ("nefs", frozenset(), 0),
    "dbus-run-session": ("", frozenset(), 0),
    "cross-env": ("", frozenset(), 0),
    "dotenv": ("ef", frozenset(("--file",)), 0),
    "dotenvx": ("f", frozenset(), 0),
    "direnv": ("", frozenset(), 2),
    "flock": ("wE", frozenset(), 1),
    "strace": ("eopsP", frozenset(), 0),
    "catchsegv": ("", frozenset(), 0),
    "conda": ("npc", frozenset(("--name", "--prefix", "--cwd")), 0),
    "mamba": ("np", frozenset(), 0),
    "micromamba": ("np", frozenset(), 0),
    "mise": ("", frozenset(), 0),
    "bundle": ("", frozenset(), 0),
    "xargs": ("IEdLnPsa", frozenset(), 0),
    "watch": ("nd", frozenset(), 0),
    "busybox": ("", frozenset(), 0),
}
"""Programs that run the command after their own options (which letters and names take a value), and after so many words."""
_VERBS = ("run", "exec", "x")
"""What a wrapper may be told first: `conda run`, `bundle exec`."""
_SHELLS = ("sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "mksh")
_READERS: dict[str, Reader] = {
    **dict.fromkeys(("python", "pypy", "pythonw", "ipython"), read_python),
    **dict.fromkeys(("node", "nodejs", "tsx", "ts-node", "ts-node-esm", "ts-node-dev", "nodemon", "esno", "jiti"), read_node),
    "bun": read_bun,
    "deno": read_deno,
    "perl": read_perl,
    **dict.fromkeys(("ruby", "jruby"), read_ruby),
    **dict.fromkeys(("php", "php-cgi"), read_php),
    "java": read_java,
    **dict.fromkeys(
        words_of(
            """lua luajit texlua Rscript julia elixir escript groovy kotlin scala osascript pwsh powershell tclsh wish guile racket
        awk gawk mawk sed nim crystal runghc runhaskell ocaml sbcl clojure bb janet swift wasmtime wasmer mono qjs gjs k6 streamlit uvicorn
        gunicorn fastmcp"""
        ),
        read_script,
    ),
    "go": read_go,
    "cargo": read_cargo,
    "dotnet": read_dotnet,
    **dict.fromkeys(("docker", "podman", "nerdctl"), read_docker),
    **dict.fromkeys(("docker-compose", "podman-compose"), read_compose),
    **dict.fromkeys(
        ("gradle", "mvn", "sbt", "mix", "lein", "stack", "cabal", "dune", "bazel", "zig", "swiftc", "meson", "ninja"), read_built
    ),
    **dict.fromkeys(("npm", "pnpm", "yarn"), read_npm),
    **dict.fromkeys(("npx", "bunx", "pnpx"), read_npx),
    **dict.fromkeys(("make", "gmake"), read_make),
    **dict.fromkeys(("just", "task", "rake", "invoke", "fab", "nox", "tox", "foreman", "honcho", "overmind", "mask", "mage"), read_tasks),
    **dict.fromkeys(("uv", "poetry", "pipenv", "pdm", "hatch", "rye"), read_python_runner),
}
_MODULES = frozenset(("uvicorn", "gunicorn", "fastmcp", "hypercorn", "flask"))
"""They are given a module, as `app.main:app`."""
_ONLY_READ = words_of(
    """[ test true false : echo printf cat cd pwd export set unset local shift return exit trap umask wait read sleep date mkdir touch cp mv
    rm ln ls tee head tail cut sort uniq tr wc grep egrep fgrep rg jq yq diff cmp find stat basename dirname realpath readlink tar gzip
    gunzip zip unzip curl wget git gh hg ssh scp rsync notify-send osascript say logger pkill kill ps id whoami uname hostname which type
    ruff black isort mypy pyright pyrefly ty gofmt goimports rustfmt clang-format shfmt shellcheck hadolint yamllint markdownlint typos
    codespell uvx pipx sqlite3 psql mysql redis-cli open xdg-open"""
)
"""Programs that run no code of the folder, whatever files they are given; uvx and pipx run what they fetch."""
MAX_STUB_CHARS = 2_000
"""The programs that pip writes into an environment are shorter: they import a module and call it."""
_SERVER = re.compile(r"(?:^|[-_.])mcp(?:[-_.]|$)")
"""A program of the user's that is a server itself, and no launcher: what it is given is data."""


def find_code(
    words: Sequence[str], directory: str, project: str, env: Mapping[str, str] | None = None, *, is_line: bool = False
) -> ProjectCode:
    """What a command would run of the project, started in `directory`. `is_line`: its one word is a line for a shell."""
    search = Search(project, env)
    directory = os.path.abspath(directory)
    if is_line:
        _read_line(search, words[0] if words else "", CommandToRead((), directory))
    else:
        search.then(words, directory)
    while search.jobs:
        _read(search, search.jobs.popleft())
    return search.found()


def _read(search: Search, job: CommandToRead) -> None:
    words = [word for word in job.words if "\0" not in word]
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
        name, _, value = words.pop(0).partition("=")
        search.env[name] = value
    if not words:
        return
    name = _name_of(words[0])
    is_own = False
    if place := _place_of(search, words[0], job):
        is_own = search.is_of_project(os.path.dirname(place))
        words[0] = place
    job = CommandToRead(tuple(words), job.directory, job.is_named, job.bins)
    if is_own:
        _take_script(search, place, job)
    if name == "env":
        _read_env(search, job)
    elif name in _WRAPPERS and not is_own:
        _read_wrapped(search, job, name)
    elif name in _SHELLS:
        _read_shell(search, job)
    elif name in ("source", "."):
        for word in words[1:2]:
            _take_script(search, os.path.join(job.directory, word), job)
    elif name in _READERS:
        if name in _MODULES:
            _take_app(search, job)
        _READERS[name](search, job)
    elif job.is_named and not is_own and name not in _ONLY_READ and not _SERVER.search(name):
        _take_unknown(search, job)


def _name_of(program: str) -> str:
    """`/usr/bin/python3.11` is python."""
    name = re.sub(r"\.(?:exe|cmd|bat)$", "", os.path.basename(program), flags=re.IGNORECASE)
    plain = re.sub(r"[-\d.]+$", "", name)
    return plain if plain in _READERS or plain in _SHELLS else name


def _place_of(search: Search, program: str, job: CommandToRead) -> str:
    """Where a program lies that is named by its path, or stands in a folder of the project that is looked through; else empty."""
    if os.sep in program or program.startswith("~"):
        places = [os.path.join(job.directory, os.path.expanduser(program))]
    else:
        paths = (os.path.join(job.directory, part) for part in search.env.get("PATH", "").split(os.pathsep) if part)
        places = [os.path.join(folder, program) for folder in (*job.bins, *filter(search.is_of_project, paths))]
    return next(filter(os.path.isfile, places), "")


def _take_script(search: Search, path: str, job: CommandToRead) -> None:
    if not search.take(path):
        return
    text = search.read(path)
    first = text.partition("\n")[0]
    if re.match(r"#!.*\b(?:sh|bash|zsh|dash|ksh)\b", first) or (not first.startswith("#!") and path.endswith((".sh", ".bash"))):
        read_recipe_text(search, text, job.directory, os.path.dirname(os.path.realpath(path)), job.bins)
    elif first.startswith("#!"):
        search.then((*first[2:].split()[:3], path), job.directory, is_named=False)
        if len(text) < MAX_STUB_CHARS:
            take_entry(search, path, text)


def _read_env(search: Search, job: CommandToRead) -> None:
    options, rest = read_options(job.words[1:], "uCSP", frozenset(("--unset", "--chdir", "--split-string")))
    directory = job.directory
    for name, value in options:
        if name in ("C", "--chdir"):
            directory = os.path.join(directory, value)
        elif name in ("S", "--split-string"):
            rest = [*value.split(), *rest]
    search.then(rest, directory, is_named=job.is_named, bins=job.bins)


def _read_wrapped(search: Search, job: CommandToRead, name: str) -> None:
    letters, names, skipped = _WRAPPERS[name]
    words = list(job.words[1:])
    words = words[1:] if words and words[0] in _VERBS else words
    options, rest = read_options(words, letters, names)
    directory = job.directory
    for option, value in options:
        if (name, option) in (("sudo", "D"), ("doas", "C")) or option in ("--chdir", "--cwd"):
            directory = os.path.join(directory, value)
    if any(option in ("c", "--command") for option, _ in options) and name == "flock":
        return read_recipe_text(search, " ".join(rest[1:]), directory)
    search.then(rest[skipped:], directory, is_named=job.is_named, bins=job.bins)


def _read_shell(search: Search, job: CommandToRead) -> None:
    words, is_line = list(job.words[1:]), False
    while words and words[0].startswith(("-", "+")) and words[0] != "-":
        word = words.pop(0)
        if word in ("--rcfile", "--init-file") and words:
            search.take(os.path.join(job.directory, words.pop(0)))
        elif word == "--":
            break
        elif not word.startswith("--"):
            is_line = is_line or "c" in word
            if word.endswith(("o", "O")) and words:
                words.pop(0)
    for name in ("BASH_ENV", "ENV"):
        if value := search.env.get(name):
            search.take(os.path.join(job.directory, value))
    if is_line and words:
        _read_line(search, words[0], job)
    elif words:
        _take_script(search, os.path.join(job.directory, words[0]), job)
        text = search.read(os.path.join(job.directory, words[0]))
        read_recipe_text(search, text, job.directory, os.path.dirname(os.path.join(job.directory, words[0])), job.bins)


def _read_line(search: Search, line: str, job: CommandToRead) -> None:
    """A line the user was shown: what is not known of its commands is told."""
    directory = job.directory
    for command in commands_in(line, {**search.env, "PWD": directory}):
        search.env |= command.env
        for path in command.read:
            if is_code(os.path.join(directory, path)):
                search.take(os.path.join(directory, path))
        if command.words[0] == "cd" and len(command.words) > 1:
            directory = os.path.join(directory, command.words[1])
        elif command.words[0].startswith("$") or command.words[0] == "eval":
            search.take_unknown(directory)
        else:
            search.then(command.words, directory, is_named=job.is_named, bins=job.bins)


def _take_app(search: Search, job: CommandToRead) -> None:
    for word in job.words[1:]:
        if re.fullmatch(r"[\w.]+:[\w.]+", word):
            take_module(search, word, [job.directory])


def _take_unknown(search: Search, job: CommandToRead) -> None:
    """Nobody here knows whether the program runs what it is given: every file and folder of the project among its words."""
    for word in job.words[1:]:
        for piece in dict.fromkeys((word, word.rpartition("=")[2])):
            path = os.path.join(job.directory, os.path.expanduser(piece))
            if piece and "\0" not in piece and not piece.startswith("-") and os.path.lexists(path):
                search.take_unknown(path)
