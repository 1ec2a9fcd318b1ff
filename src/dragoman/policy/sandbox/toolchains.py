"""Finds the programs a user works with, wherever they lie: what PATH, VIRTUAL_ENV and the like name, and installed toolchains.

A folder that is named there stays visible to commands, read-only. Never one that holds more than a toolchain: a home, a folder above one or
above the workspace, or one with projects in it, as when PATH says `/` or `$HOME`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dragoman.base.beneath import is_inside
from dragoman.base.found_files import read_found

LISTS = ("PATH", "PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "GEM_PATH", "NIX_PROFILES")
"""Variables that name several folders."""
FOLDERS = (
    "VIRTUAL_ENV", "CONDA_PREFIX", "CARGO_HOME", "RUSTUP_HOME", "NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL",
    "DENO_INSTALL", "PYENV_ROOT", "RBENV_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "SDKMAN_DIR", "GOROOT", "JAVA_HOME",
    "MAVEN_HOME", "M2_HOME", "GRADLE_HOME", "ANDROID_HOME", "GEM_HOME", "DOTNET_ROOT", "UV_PYTHON_INSTALL_DIR", "PLAYWRIGHT_BROWSERS_PATH",
    "SSL_CERT_DIR",
)  # fmt: skip
"""Variables that name one folder."""
FILES = (
    "SSL_CERT_FILE", "NIX_SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT",
    "CARGO_HTTP_CAINFO", "DENO_CERT", "npm_config_cafile",
)  # fmt: skip
"""Variables that name a file: the certificates by which servers are known, as where a network has its own."""
VARIABLES = (*LISTS, *FOLDERS, *FILES, "GOPATH")

IN_HOME = (
    ".cargo", ".rustup", ".nvm", ".fnm", ".volta", ".pyenv", ".rbenv", ".rvm", ".nodenv", ".goenv", ".jenv", ".asdf", ".sdkman", ".bun",
    ".deno/bin", ".ghcup", ".cabal/bin", ".stack/programs", ".opam", ".elan", ".juliaup", ".dotnet", ".pub-cache/bin", ".foundry/bin",
    ".yarn/bin", ".npm-global", ".npm-packages", ".gem/ruby", ".linuxbrew", ".nix-profile", ".local/state/nix", ".local/bin", ".local/lib",
    ".local/pipx", ".local/share/pipx", ".local/share/uv/python", ".local/share/uv/tools", ".local/share/pnpm", ".local/share/mise",
    ".local/share/fnm", ".local/share/gem/ruby", ".local/share/pypoetry", ".local/share/virtualenvs", "go/bin", "go/pkg", "miniconda3",
    "anaconda3", "miniforge3", "mambaforge", "micromamba",
    ".gitconfig", ".config/git", ".gitignore", ".gitignore_global", ".gitattributes", ".editorconfig", ".terminfo", ".tool-versions",
    ".python-version", ".node-version", ".nvmrc", ".ruby-version",
)  # fmt: skip
"""Toolchains in a home directory, and files that git and version managers read there."""
_ANYWHERE = ("/home/linuxbrew/.linuxbrew",)
_ENVIRONMENTS = (".venv", "venv", "env")
_BESIDE_PROGRAMS = ("lib", "lib64", "libexec", "include", "share")
_HOMES_IN = ("/home", "/Users", "/var/home", "/usr/home")
_MOST_INNER = 2000
_MOST_STEPS = 1000
_CONFIG_BYTES = 8192


def known_homes() -> list[str]:
    """The homes of people in /etc/passwd, and root's. Not those of services: they may be any folder of the system."""
    try:
        lines = read_found("/etc/passwd", 1 << 20).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []
    entries = [fields for line in lines if len(fields := line.split(":")) > 5 and fields[2].isdigit()]
    return [fields[5] for fields in entries if (fields[2] == "0" or 1000 <= int(fields[2]) < 60_000) and fields[5].startswith("/")]


def find_toolchains(env: Mapping[str, str], homes: Sequence[str], workspace: Sequence[str]) -> list[str]:
    """Files and folders that exist, as they are named. `homes`: of whoever commands run for and as. `workspace`: its folders."""
    found = find_named(env, homes, workspace)
    own = [os.path.join(home, name) for home in homes if home for name in IN_HOME]
    return list(dict.fromkeys((*found, *_led_by_users((path for path in (*own, *_ANYWHERE) if os.access(path, os.F_OK)), workspace))))


def find_named(env: Mapping[str, str], homes: Sequence[str], workspace: Sequence[str]) -> list[str]:
    """Those that variables name, as they name them."""
    apart = [*map(os.path.realpath, (*homes, *known_homes())), *workspace]
    return [path for path in named_by(env, workspace) if may_be_shown(path, apart) or os.path.realpath(path) in workspace]


def named_by(env: Mapping[str, str], workspace: Sequence[str] = ()) -> list[str]:
    """What the variables name, and what that needs: the libraries beside programs, the Python behind a virtual environment. The workspace's
    own environments count as named. Of what is reached through the workspace: nothing but such environments, for its links are whoever's
    wrote it."""
    lists = [
        path for name in LISTS for path in env.get(name, "").replace(" ", os.pathsep if name == "NIX_PROFILES" else " ").split(os.pathsep)
    ]
    folders = [env.get(name, "") for name in FOLDERS]
    sources = [os.path.join(path, name) for path in env.get("GOPATH", "").split(os.pathsep) if path for name in ("bin", "pkg")]
    named = [os.path.normpath(path) for path in (*lists, *folders, *sources) if os.path.isabs(path)]
    found = [path for each in dict.fromkeys(named) if os.path.isdir(each) for path in _with_parts(each)]
    found += [os.path.normpath(path) for name in FILES if os.path.isabs(path := env.get(name, "")) and os.path.isfile(path)]
    environments = [os.path.join(root, name) for root in workspace for name in _ENVIRONMENTS]
    found += (path for each in environments for path in _python_of(each))
    linked = (path for each in (*named, *environments) for path in _environment_behind(each, workspace))
    return list(dict.fromkeys((*_led_by_users(found, workspace), *linked)))


def _led_by_users(paths: Iterable[str], workspace: Sequence[str]) -> Iterator[str]:
    """Those that no link in the workspace leads to. Where a way goes through the workspace, it is shown as far as that."""
    for path in paths:
        if not goes_through(path, workspace):
            yield path
        elif door := next((way for way in (path, *_above(path)) if os.path.realpath(way) in workspace), ""):
            yield door


def _above(path: str) -> Iterator[str]:
    while (above := os.path.dirname(path)) != path:
        yield above
        path = above


def goes_through(path: str, folders: Sequence[str]) -> bool:
    """Whether one comes into one of these folders on the way to a path, link by link, wherever the way ends."""
    done, left = "/", [part for part in path.split("/") if part]
    for _ in range(_MOST_STEPS):
        if any(is_inside(done, folder) for folder in folders):
            return True
        if not left:
            return False
        step = os.path.normpath(os.path.join(done, left.pop(0)))
        try:
            target = os.readlink(step)
        except OSError:  # not a link
            done = step
            continue
        if target.startswith("/"):
            done = "/"
        left = [*(part for part in target.split("/") if part), *left]
    return True


def _environment_behind(path: str, workspace: Sequence[str]) -> Iterator[str]:
    """A virtual environment elsewhere to which a link in the workspace leads. Of what a link leads to, nothing else is shown."""
    real = os.path.realpath(path)
    if not goes_through(path, workspace) or goes_through(real, workspace):
        return
    for each in (real, os.path.dirname(real)):
        is_environment = all(_is_file(os.path.join(each, name)) for name in ("pyvenv.cfg", "bin/python3"))
        if is_environment and not os.access(os.path.join(each, ".git"), os.F_OK):
            yield each
            yield from _led_by_users(_python_of(each), workspace)
            return


def may_be_shown(path: str, apart: Iterable[str]) -> bool:
    """Whether a folder that a variable names is one for programs. `apart`: real paths of homes and workspaces, which it must not hold."""
    real = os.path.realpath(path)
    return (
        real.count("/") > 1
        and os.path.dirname(real) not in _HOMES_IN
        and not any(is_inside(each, real) for each in apart if each != "/")
        and not _holds_projects(real)
    )


def _holds_projects(folder: str) -> bool:
    """Whether a folder in it is a git repository."""
    inner = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inner += 1
                    if inner > _MOST_INNER or os.access(f"{entry.path}/.git", os.F_OK):
                        return True
    except OSError:
        pass
    return False


def _with_parts(folder: str) -> Iterator[str]:
    yield folder
    above, name = os.path.split(folder)
    if name == ".bin" and os.path.basename(above) == "node_modules":
        yield above  # the programs are links into it
    if os.access(os.path.join(folder, "pyvenv.cfg"), os.F_OK):
        yield from _python_of(folder)
    elif os.access(os.path.join(above, "pyvenv.cfg"), os.F_OK):
        yield above
        yield from _python_of(above)
    elif name in ("bin", "sbin", "condabin"):
        yield from _beside(above)


def _beside(prefix: str) -> Iterator[str]:
    """What programs in a folder `bin` need of the folders beside it."""
    if os.access(os.path.join(prefix, "conda-meta"), os.F_OK):
        yield prefix
    elif os.path.basename(prefix) != ".local" and not os.access(os.path.join(prefix, ".git"), os.F_OK):
        yield from filter(os.path.isdir, (os.path.join(prefix, name) for name in _BESIDE_PROGRAMS))


def _python_of(environment: str) -> Iterator[str]:
    """The Python that a virtual environment was made from. A repository may bring the file that names it: so there must be one."""
    try:
        lines = read_found(os.path.join(environment, "pyvenv.cfg"), _CONFIG_BYTES).decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    values = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in lines)}
    home = os.path.normpath(values.get("home") or ".")
    if os.path.isabs(home) and os.path.basename(home) == "bin" and _is_program(os.path.join(home, "python3")):
        yield home
        yield from _beside(os.path.dirname(home))


def _is_program(path: str) -> bool:
    return _is_file(path) and os.access(path, os.X_OK)


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
