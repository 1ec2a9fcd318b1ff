"""What interpreters run: the script, module or library they are given, found where each of them looks for it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from dragoman.base import jsontext
from dragoman.base.runs.search import CommandToRead, Search, options_of

Reader = Callable[[Search, CommandToRead], None]
"""Adds what a command runs. `job.words[0]` is the program."""
_NODE_ENDS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".tsx", ".jsx", ".json", ".node")
_NODE_VALUES = options_of(
    """require import loader experimental-loader env-file conditions eval print tsconfig project preload config
    cwd filter import-map lock cert location allow-read compilerOptions compiler cwd-mode"""
)
_LOADED_BY_NODE = ("r", "--require", "--import", "--loader", "--experimental-loader", "--preload")


def read_options(
    words: Sequence[str], valued: str, long_valued: frozenset[str] = frozenset(), ends: str = ""
) -> tuple[list[tuple[str, str]], list[str]]:
    """The options before the first word that is none, and the words from there on. `valued`: letters that take a value, in the same word or
    the next one. After one of `ends` the rest belongs to what is run."""
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        word = words[at]
        at += 1
        if word.startswith("--"):
            name, sign, value = word.partition("=")
            if not sign and name in long_valued and at < len(words):
                value, at = words[at], at + 1
            found.append((name, value))
            continue
        for number, letter in enumerate(word[1:], 2):
            if letter not in valued:
                found.append((letter, ""))
                continue
            value = word[number:]
            if not value and at < len(words):
                value, at = words[at], at + 1
            found.append((letter, value))
            if letter in ends:
                return found, list(words[at:])
            break
    return found, list(words[at + 1 :] if at < len(words) and words[at] == "--" else words[at:])


def _listed_in(search: Search, variable: str, directory: str) -> list[str]:
    return [os.path.join(directory, part) for part in search.env.get(variable, "").split(os.pathsep) if part]


# --- Python


def read_python(search: Search, job: CommandToRead) -> None:
    """`-m` looks through the folder it is started in, PYTHONPATH and the packages of the environment the program lies in."""
    options, rest = read_options(job.words[1:], "cmWXQ", frozenset(("--check-hash-based-pycs",)), "cm")
    paths = _listed_in(search, "PYTHONPATH", job.directory)
    packages = _take_environment(search, os.path.join(job.directory, job.words[0])) if os.sep in job.words[0] else []
    for path in paths:
        search.take_all(path, ("sitecustomize.py", "usercustomize.py"))
    for letter, value in options:
        if letter == "m":
            take_module(search, value, [job.directory, *paths, *packages])
        elif letter == "c":
            for name in re.findall(r"\b(?:import|from)\s+([\w.]+)", value):
                take_module(search, name, [job.directory, *paths])
    if rest and not any(letter in "cm" for letter, _ in options):
        script = os.path.join(job.directory, rest[0])
        search.take_all(script, ("__main__.py",)) if os.path.isdir(script) else search.take(script)


def take_module(search: Search, name: str, folders: Iterable[str]) -> bool:
    """A module by its dotted name, in the first of these folders that has it: the packages around it are run too."""
    parts = name.partition(":")[0].split(".")
    if not all(part.isidentifier() for part in parts):
        return False
    for folder in folders:
        at, is_there = folder, False
        for part in parts:
            at = os.path.join(at, part)
            is_there = bool(search.take_all(at, ("__init__.py", "__main__.py"))) or os.path.isdir(at)
            binary = search.names_in(os.path.dirname(at), f"{part}.", (".so", ".pyd"))
            ends = [f"{at}.py", f"{at}.pyc", *binary]
            is_there = any([*map(search.take, ends)]) or is_there
            if not is_there:
                break
        if is_there:
            return True
    return False


def _take_environment(search: Search, program: str) -> list[str]:
    """A virtual environment of the project: what Python runs of it at every start. Returns the folders it finds packages in."""
    root = os.path.dirname(os.path.dirname(program))
    if not search.is_of_project(root) or not search.take(os.path.join(root, "pyvenv.cfg")):
        return []
    packages = [os.path.join(folder, "site-packages") for folder in search.names_in(os.path.join(root, "lib"), "python3")]
    added: list[str] = []
    for folder in packages:
        search.take_all(folder, ("sitecustomize.py", "usercustomize.py"))
        for path in search.names_in(folder, "", (".pth",)):
            search.take(path)
            added += [os.path.join(folder, line.strip()) for line in search.read(path).splitlines() if line.strip()]
    return packages + list(filter(os.path.isdir, added))


def take_entry(search: Search, program: str, text: str) -> None:
    """The module that a program of a virtual environment imports and calls."""
    folders = _take_environment(search, program)
    for name in re.findall(r"^(?:from|import)\s+([\w.]+)", text, re.MULTILINE) if folders else ():
        take_module(search, name, folders)


# --- JavaScript


def read_node(search: Search, job: CommandToRead) -> None:
    """Node and what takes the same words: tsx, ts-node."""
    options, rest = read_options(job.words[1:], "repCP", _NODE_VALUES, "")
    options += read_options(search.env.get("NODE_OPTIONS", "").split(), "rC", _NODE_VALUES)[0]
    for name, value in options:
        if name in _LOADED_BY_NODE:
            take_node_module(search, value, job.directory)
        elif name == "--run":
            search.then(("npm", "run", value or next(iter(rest), "")), job.directory, is_named=False)
    if any(name == "--run" for name, _ in options):
        return
    if rest and rest[0] in ("watch", "test") and not os.path.exists(os.path.join(job.directory, rest[0])):
        rest = rest[1:]
    if rest and not any(name in ("e", "p", "--eval", "--print") for name, _ in options):
        take_node_path(search, os.path.join(job.directory, rest[0]))


def read_bun(search: Search, job: CommandToRead) -> None:
    """`bun run x`: a script of package.json, or a file. bunfig.toml may name files that are loaded first."""
    search.take_all(job.directory, ("bunfig.toml",))
    options, rest = read_options(job.words[1:], "rpe", _NODE_VALUES)
    for name, value in options:
        if name in _LOADED_BY_NODE:
            take_node_module(search, value, job.directory)
    if rest and rest[0] in ("x", "exec"):
        search.then(("npx", *rest[1:]), job.directory, is_named=job.is_named)
        return
    rest = rest[1:] if rest and rest[0] == "run" else rest
    if rest and not take_node_path(search, os.path.join(job.directory, rest[0])):
        search.then(("npm", "run", *rest), job.directory, is_named=False)


def read_deno(search: Search, job: CommandToRead) -> None:
    """`deno run x.ts`, `deno task x`, `deno x.ts`."""
    verb, rest = (job.words[1], job.words[2:]) if len(job.words) > 1 else ("", ())
    if verb not in ("run", "task", "serve", "test", "eval", "x"):
        verb, rest = "run", job.words[1:]
    options, rest = read_options(rest, "c", _NODE_VALUES)
    named = [value for name, value in options if name in ("c", "--config", "--import-map", "--preload") and value]
    search.take_all(job.directory, ("deno.json", "deno.jsonc", "import_map.json", *named))
    if verb == "task":
        for path in ("deno.json", "deno.jsonc", "package.json"):
            search.take(os.path.join(job.directory, path))
            for line in scripts_of(search.read(os.path.join(job.directory, path)), "tasks", rest[0] if rest else ""):
                search.then(("sh", "-c", line), job.directory, is_named=False)
    elif rest:
        take_node_path(search, os.path.join(job.directory, rest[0]))


def scripts_of(text: str, table: str, name: str) -> list[str]:
    """The lines of a script in package.json or deno.json, with those that run before and after it."""
    found = jsontext.decode_object(text) or {}
    scripts = found.get(table)
    if not isinstance(scripts, dict):
        return []
    rows = [scripts.get(each) for each in (f"pre{name}", name, f"post{name}")]
    return [line for row in rows if isinstance(line := row.get("command") if isinstance(row, dict) else row, str)]


def take_node_path(search: Search, path: str) -> bool:
    """A script or folder as Node resolves it: the file, the name with an ending, or the folder's main file."""
    if any(search.take(path + end) for end in ("", *_NODE_ENDS)):
        return True
    if not os.path.isdir(path):
        return False
    manifest = os.path.join(path, "package.json")
    main = (jsontext.decode_object(search.read(manifest)) or {}).get("main") if search.take(manifest) else None
    places = [os.path.join(path, main)] if isinstance(main, str) and main else []
    for place in (*places, os.path.join(path, "index")):
        if any(search.take(place + end) for end in ("", *_NODE_ENDS)):
            return True
        if place != path and any(search.take(os.path.join(place, "index") + end) for end in _NODE_ENDS):
            return True
    return False


def take_node_module(search: Search, name: str, directory: str) -> None:
    """What `--require` and `--import` name: a path, or a package of the nearest node_modules."""
    if name.startswith(("./", "../", "/")):
        take_node_path(search, os.path.join(directory, name))
        return
    for folder in folders_up(search, directory):
        if take_node_path(search, os.path.join(folder, "node_modules", name)):
            return


def folders_up(search: Search, directory: str) -> Iterator[str]:
    """From a folder up to the project's root."""
    at = os.path.realpath(directory)
    while search.is_of_project(at):
        yield at
        if at == search.project:
            return
        at = os.path.dirname(at)


# --- others


def read_perl(search: Search, job: CommandToRead) -> None:
    options, rest = read_options(job.words[1:], "IMmeEFxDC")
    folders = [os.path.join(job.directory, value) for letter, value in options if letter == "I"]
    folders += _listed_in(search, "PERL5LIB", job.directory)
    for letter, value in options:
        name = re.match(r"-?([\w:]+)", value)
        if letter in "Mm" and name:
            _take_first(search, folders, f"{name[1].replace('::', os.sep)}.pm")
    if rest and not any(letter in "eE" for letter, _ in options):
        search.take(os.path.join(job.directory, rest[0]))


def read_ruby(search: Search, job: CommandToRead) -> None:
    options, rest = read_options([*job.words[1:]], "rIeCEFKWxT")
    options += read_options(search.env.get("RUBYOPT", "").split(), "rIW")[0]
    directory = job.directory
    for letter, value in options:
        directory = os.path.join(directory, value) if letter == "C" else directory
    folders = [os.path.join(directory, value) for letter, value in options if letter == "I"] + _listed_in(search, "RUBYLIB", directory)
    for letter, value in options:
        if letter == "r":
            _take_first(search, [directory] if value.startswith((".", os.sep)) else folders, value, f"{value}.rb")
    if rest and not any(letter == "e" for letter, _ in options):
        search.take(os.path.join(directory, rest[0]))


def _take_first(search: Search, folders: Iterable[str], *names: str) -> None:
    for folder in folders:
        if search.take_all(folder, names):
            return


def read_php(search: Search, job: CommandToRead) -> None:
    options, rest = read_options(job.words[1:], "frBRFEStcdz")
    search.take_all(job.directory, ("php.ini", ".user.ini"))
    for letter, value in options:
        if letter in "fFctz":
            search.take(os.path.join(job.directory, value))
        elif letter == "d":
            search.take(os.path.join(job.directory, value.partition("=")[2]))
        if letter == "t":
            search.take_all(os.path.join(job.directory, value), ("index.php",))
    if rest:
        search.take(os.path.join(job.directory, rest[0]))


def read_java(search: Search, job: CommandToRead) -> None:
    """`-jar x.jar`, `-cp classes:lib.jar Main`, `Main.java`, `-javaagent:x.jar`, `@options`."""
    words = [*search.env.get("JAVA_TOOL_OPTIONS", "").split(), *job.words[1:]]
    paths = _listed_in(search, "CLASSPATH", job.directory) or [job.directory]
    at = 0
    while at < len(words):
        word, value = words[at], words[at + 1] if at + 1 < len(words) else ""
        at += 1
        if word == "-jar":
            search.take(os.path.join(job.directory, value))
            return
        if word in ("-cp", "-classpath", "--class-path", "-p", "--module-path"):
            at += 1
            paths = [os.path.join(job.directory, part) for part in value.split(os.pathsep) if part]
        elif word in ("-m", "--module"):
            for path in paths:
                search.take_code(path)
            return
        elif word.startswith("-javaagent:"):
            search.take(os.path.join(job.directory, word.removeprefix("-javaagent:").partition("=")[0]))
        elif word.startswith("@"):
            search.take(os.path.join(job.directory, word[1:]))
        elif not word.startswith("-"):
            _take_class(search, word, paths, job.directory)
            return


def _take_class(search: Search, name: str, paths: Sequence[str], directory: str) -> None:
    if name.endswith(".java"):
        search.take(os.path.join(directory, name))
        return
    place = name.replace(".", os.sep).replace("/", os.sep) + ".class"
    for path in paths:
        if path.endswith("*"):
            for jar in search.names_in(path[:-1].rstrip(os.sep), "", (".jar",)):
                search.take(jar)
        elif not search.take(path):
            search.take(os.path.join(path, place))


def read_script(search: Search, job: CommandToRead) -> None:
    """Any interpreter that runs the first file it is given."""
    for word in job.words[1:]:
        if not word.startswith("-") and search.take(os.path.join(job.directory, word)):
            return
