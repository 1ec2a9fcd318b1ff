"""What is run by programs that look up a line to run by its name: in package.json, a Makefile, a justfile, pyproject.toml.

The file counts, and what its lines run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from dragoman.base import jsontext
from dragoman.base.runs.interpreters import folders_up, read_options, scripts_of, take_module, take_node_path
from dragoman.base.runs.search import CommandToRead, Search, is_code, options_of, words_of
from dragoman.base.runs.shell_lines import commands_in

_NPM_OWN = words_of(
    """install i ci add remove rm uninstall update audit publish pack login logout config cache init create link ls list view info outdated
    prune rebuild version help why import store patch set dedupe fund owner ping search token whoami bin root prefix"""
)
_NPM_RUNS = frozenset(("start", "stop", "test", "t", "restart"))
_NPM_VALUES = frozenset(("--prefix", "--dir", "--cwd", "--workspace", "--filter", "--package", "--call", "--script-shell"))
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_FILES_OF = {
    "just": ("justfile", "Justfile", ".justfile", "JUSTFILE"),
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml"),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "invoke": ("tasks.py",),
    "fab": ("fabfile.py",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini", "setup.cfg", "pyproject.toml"),
    "foreman": ("Procfile",),
    "honcho": ("Procfile",),
    "overmind": ("Procfile",),
    "mask": ("maskfile.md",),
    "mage": ("magefile.go",),
}
"""The files that a program reads its recipes from, in the folder it is started in or the next one above that has one."""


def read_recipe_text(search: Search, text: str, directory: str, own_folder: str = "", bins: Sequence[str] = ()) -> None:
    """The commands of a script or recipe; and, for what they leave open, every file of code that a word of it names."""
    bases = [directory, *([own_folder] if own_folder and own_folder != directory else [])]
    at = directory
    for command in commands_in(text, search.env, own_folder):
        if command.words[0] == "cd" and len(command.words) > 1:
            at = os.path.join(at, command.words[1])
        else:
            search.then(command.words, at, is_named=False, bins=bins)
    for piece in dict.fromkeys(re.split(r"""[\s;&|()<>"'`=:,]+""", text)):
        inside = re.sub(r"^(?:[@-]|\$\{?\w+\}?/|\$\(\w+\)/)+", "", piece)
        for base in bases if inside and "\0" not in inside and len(inside) < 1_000 else ():
            path = os.path.join(base, os.path.expanduser(inside))
            if is_code(path) and not os.path.isdir(path):
                search.take(path)


# --- npm, pnpm, yarn


def read_npm(search: Search, job: CommandToRead) -> None:
    """`npm run x`, `npm start`, `yarn x`, `pnpm --dir web run x`: the script of package.json, and what it runs."""
    program = os.path.basename(job.words[0])
    options, rest = read_options(job.words[1:], "CwFp", _NPM_VALUES)
    folder = job.directory
    for name, value in options:
        folder = os.path.join(folder, value) if name in ("C", "--prefix", "--dir", "--cwd") else folder
    verb = rest[0] if rest else ("install" if program == "yarn" else "")
    if verb in ("exec", "x", "dlx"):
        return read_npx(search, CommandToRead((program, *rest[1:]), folder, job.is_named))
    folder = next((each for each in folders_up(search, folder) if os.path.lexists(os.path.join(each, "package.json"))), folder)
    search.take_all(folder, ("package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnpmfile.cjs"))
    if verb in ("run", "run-script") or verb in _NPM_RUNS:
        named = read_options(rest[1:], "w", _NPM_VALUES)[1] if verb.startswith("run") else [{"t": "test"}.get(verb, verb)]
    else:
        named = rest if verb not in _NPM_OWN else ["install"]
    lines = scripts_of(search.read(os.path.join(folder, "package.json")), "scripts", named[0]) if named else []
    if not lines and verb == "start":
        lines = ["node server.js"]
    bins = _bins(search, folder)
    for line in lines:
        read_recipe_text(search, line, folder, bins=bins)
    if not lines and named and program in ("yarn", "pnpm") and verb not in _NPM_OWN:
        search.then(named, folder, is_named=False, bins=bins)


def read_npx(search: Search, job: CommandToRead) -> None:
    """`npx x`: a program of the project's own packages, or one from the registry, which .npmrc may name."""
    options, rest = read_options(job.words[1:], "pcw", _NPM_VALUES)
    for folder in folders_up(search, job.directory):
        search.take_all(folder, (".npmrc",))
    bins = _bins(search, job.directory)
    for name, value in options:
        if name in ("c", "--call"):
            read_recipe_text(search, value, job.directory, bins=bins)
    if not rest:
        return
    name = re.sub(r"(?<=.)@[^@/]*$", "", rest[0])
    if rest[0].startswith((".", "/")):
        take_node_path(search, os.path.join(job.directory, rest[0]))
        _take_bin_of(search, os.path.join(job.directory, rest[0]))
    else:
        search.then((name.rpartition("/")[2], *rest[1:]), job.directory, is_named=False, bins=bins)
        for folder in folders_up(search, job.directory):
            _take_bin_of(search, os.path.join(folder, "node_modules", name))


def _take_bin_of(search: Search, package: str) -> None:
    """The programs that a package's manifest names."""
    manifest = os.path.join(package, "package.json")
    if not search.take(manifest):
        return
    bins = (jsontext.decode_object(search.read(manifest)) or {}).get("bin")
    for path in (bins,) if isinstance(bins, str) else bins.values() if isinstance(bins, dict) else ():
        if isinstance(path, str):
            take_node_path(search, os.path.join(package, path))


def _bins(search: Search, directory: str) -> list[str]:
    return [os.path.join(folder, "node_modules", ".bin") for folder in folders_up(search, directory)]


# --- make, just and their kind


def read_make(search: Search, job: CommandToRead) -> None:
    options, _ = read_options(job.words[1:], "CfIoW", frozenset(("--directory", "--file", "--makefile", "--include-dir")))
    folder = job.directory
    for name, value in options:
        folder = os.path.join(folder, value) if name in ("C", "--directory") else folder
    named = [value for name, value in options if name in ("f", "--file", "--makefile")]
    for name in named or _MAKEFILES:
        _read_makefile(search, os.path.join(folder, name), folder)
        if not named and os.path.lexists(os.path.join(folder, name)):
            return


def _read_makefile(search: Search, path: str, folder: str, depth: int = 5) -> None:
    if not search.take(path) or not depth:
        return
    text = search.read(path).replace("\\\n", " ")
    for name in re.findall(r"^[ ]*-?s?include[ \t]+(.+)$", text, re.MULTILINE):
        for each in name.split():
            _read_makefile(search, os.path.join(folder, each), folder, depth - 1)
    variables = dict(re.findall(r"^[ ]*(?:export[ ]+)?(\w+)[ ]*[:?+]*=[ \t]*(.*?)[ \t]*$", text, re.MULTILINE))
    recipes = [line.lstrip("\t @-+") for line in text.split("\n") if line.startswith("\t")]
    recipes += [line.partition(";")[2] for line in text.split("\n") if re.match(r"[^\t#=]+:[^=]*;", line)]
    for line in recipes:
        filled = re.sub(r"\$[({](\w+)[)}]", lambda found: variables.get(found[1], found[0]), line).replace("$$", "$")
        read_recipe_text(search, filled, folder)


def read_tasks(search: Search, job: CommandToRead) -> None:
    """just, task, rake and others of their kind."""
    program = os.path.basename(job.words[0])
    options, _ = read_options(
        job.words[1:], "fdtP", frozenset(("--justfile", "--working-directory", "--taskfile", "--dir", "--file", "--root"))
    )
    named = [value for name, value in options if name in ("f", "t", "--justfile", "--taskfile", "--file") and value]
    directory = job.directory
    for name, value in options:
        directory = os.path.join(directory, value) if name in ("d", "--working-directory", "--dir") else directory
    files = [os.path.join(job.directory, name) for name in named]
    for folder in folders_up(search, directory) if not files else ():
        files = [path for name in _FILES_OF.get(program, ()) if os.path.lexists(path := os.path.join(folder, name))]
        if files:
            break
    for path in files:
        if search.take(path):
            text = re.sub(r"^[ \t]*[@-]+", "", search.read(path), flags=re.MULTILINE)
            read_recipe_text(search, text, os.path.dirname(path) if not named else directory)


# --- Python's runners


def read_python_runner(search: Search, job: CommandToRead) -> None:
    """`uv run x`, `poetry run x`, `pipenv run x`, `hatch run x`, `pdm run x`: in the environment that the folder's files describe."""
    program = os.path.basename(job.words[0])
    valued = options_of(
        """with with-editable with-requirements extra group python env-file project directory package index
        index-url config-file cache-dir from refresh-package isolated-env"""
    )
    options, rest = read_options(job.words[1:], "pPCem", valued)
    verb = rest[0] if rest else ""
    directory = job.directory
    for name, value in options:
        directory = os.path.join(directory, value) if name in ("C", "--project", "--directory") else directory
    search.take_all(directory, ("pyproject.toml", "uv.toml", "poetry.toml", "Pipfile", "hatch.toml", ".python-version"))
    if verb != "run":
        return
    options, rest = read_options(rest[1:], "pPCmsen" if program == "uv" else "pm", valued)
    for name, value in options:
        directory = os.path.join(directory, value) if name in ("C", "--project", "--directory") else directory
        if name in ("m", "--module"):
            search.then(("python", "-m", value, *rest), directory, is_named=False, bins=_python_bins(directory))
            return
        if name in ("s", "--script", "--env-file", "--with-editable", "--with-requirements") and value:
            search.take(os.path.join(directory, value))
    if not rest:
        return
    if any(name in ("s", "--script", "--gui-script") for name, _ in options) or rest[0].endswith((".py", ".pyw")):
        search.take(os.path.join(directory, rest[0]))
        search.take(os.path.join(directory, f"{rest[0]}.lock"))
    elif os.path.isfile(os.path.join(directory, rest[0], "__main__.py")):
        search.take_all(os.path.join(directory, rest[0]), ("__main__.py",))
    else:
        search.then(rest, directory, is_named=job.is_named, bins=_python_bins(directory))
    _read_entry(search, directory, rest[0])


def _python_bins(directory: str) -> list[str]:
    return [os.path.join(directory, name, "bin") for name in (".venv", "venv")]


def _read_entry(search: Search, directory: str, name: str) -> None:
    """A program that pyproject.toml or a Pipfile declares: the module behind it, or the line."""
    tables = list(_script_tables(search, directory))
    for table in tables:
        value = table.get(name.rpartition(":")[2])
        if isinstance(value, dict):
            value = value.get("cmd") or value.get("shell") or value.get("call") or value.get("reference")
        lines = value if isinstance(value, list) else [value]
        for line in (line for line in lines if isinstance(line, str)):
            if not take_module(search, line.strip(), [directory, os.path.join(directory, "src")]):
                read_recipe_text(search, line, directory, bins=_python_bins(directory))


def _script_tables(search: Search, directory: str) -> Iterator[dict[str, object]]:
    import tomllib

    for file in ("pyproject.toml", "Pipfile", "hatch.toml"):
        try:
            found = tomllib.loads(search.read(os.path.join(directory, file)))
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        tool = found.get("tool", {})
        envs = [
            each for each in (tool.get("hatch", {}).get("envs", {}) if isinstance(tool, dict) else {}).values() if isinstance(each, dict)
        ]
        places = [
            found.get("project", {}),
            found,
            *(tool.get(each, {}) for each in ("poetry", "pdm", "rye", "uv", "poe") if isinstance(tool, dict)),
            *envs,
        ]
        for place in places:
            for key in ("scripts", "gui-scripts", "tasks") if isinstance(place, dict) else ():
                if isinstance(table := place.get(key), dict):
                    yield table
