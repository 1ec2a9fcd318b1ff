"""Caches of package managers and compilers for commands in the sandbox: one folder per workspace, never the user's real ones.

What a command put into the user's own cache, a later build outside of the sandbox would run; and one project's commands must not prepare
what another's use. So each workspace has a folder in our cache folder, which its commands can write, and nothing else there.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from dragoman.base.beneath import is_inside
from dragoman.base.lock import Locked, lock, lock_with_others
from dragoman.base.private import make_directory
from dragoman.policy.sandbox.cache_removal import ASIDE, measure, remove_tree, set_aside

MOST_BYTES = 5 * 1024**3
"""A cache that was larger is removed when the next session begins."""
UNUSED_S = 30 * 24 * 3600.0
MEASURED_AGAIN_S = 3600.0
_ENDING = ".lock"
_READING = "-reading"
_TRIES = 3

_VARIABLES = {
    "XDG_CACHE_HOME": "xdg",
    "npm_config_cache": "npm", "pnpm_config_store_dir": "pnpm", "YARN_CACHE_FOLDER": "yarn", "YARN_GLOBAL_FOLDER": "yarn-berry",
    "BUN_INSTALL_CACHE_DIR": "bun", "DENO_DIR": "deno", "COREPACK_HOME": "corepack",
    "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "POETRY_CACHE_DIR": "poetry", "PRE_COMMIT_HOME": "pre-commit", "CONDA_PKGS_DIRS": "conda",
    "NUMBA_CACHE_DIR": "numba",
    "CARGO_HOME": "cargo", "GOCACHE": "go-build", "GOMODCACHE": "go-mod", "ZIG_GLOBAL_CACHE_DIR": "zig", "CCACHE_DIR": "ccache",
    "SCCACHE_DIR": "sccache",
    "GRADLE_USER_HOME": "gradle", "MAVEN_USER_HOME": "maven-wrapper", "COMPOSER_CACHE_DIR": "composer", "BUNDLE_USER_CACHE": "bundle",
    "GEM_SPEC_CACHE": "gem", "NUGET_PACKAGES": "nuget", "DOTNET_CLI_HOME": "dotnet",
}  # fmt: skip
"""By variable: the folder in the cache of a workspace."""
_PNPM_FILES = ("pnpm-lock.yaml", "pnpm-workspace.yaml")
_MAVEN = "-Dmaven.repo.local="


def cache_variables(folder: str, env: Mapping[str, str], writable: Sequence[str]) -> dict[str, str]:
    """What tells tools to keep their caches in this folder. A variable that already names a place commands can write is left as it is."""
    named = {name: env.get(name, "") for name in _VARIABLES}
    found = {name: value if _is_in_any(value, writable) else f"{folder}/{_VARIABLES[name]}" for name, value in named.items()}
    options = env.get("MAVEN_OPTS", "")
    chosen = next((word.removeprefix(_MAVEN) for word in options.split() if word.startswith(_MAVEN)), "")
    kept = [word for word in options.split() if not word.startswith(_MAVEN)]
    if not _is_in_any(chosen, writable):
        chosen = f"{folder}/maven"
    # The user's own repository is read too where Maven can do that, from 3.9 on.
    tail = f"-Dmaven.repo.local.tail={os.path.join(env.get('HOME', '/'), '.m2/repository')}"
    return {**found, "MAVEN_OPTS": " ".join((*kept, f"{_MAVEN}{chosen}", tail)), **_for_old_pnpm(found, writable), **_browsers(env)}


def _for_old_pnpm(found: Mapping[str, str], writable: Sequence[str]) -> dict[str, str]:
    """Before version 11 it reads npm's variables, at which npm complains: so only where pnpm is used."""
    if not any(os.access(os.path.join(root, name), os.F_OK) for root in writable for name in _PNPM_FILES):
        return {}
    return {"npm_config_store_dir": found["pnpm_config_store_dir"], "npm_config_package_import_method": "copy"}


def _browsers(env: Mapping[str, str]) -> dict[str, str]:
    """Playwright looks for its browsers in the cache: they are large, and were installed by the user."""
    named = env.get("PLAYWRIGHT_BROWSERS_PATH", "")
    above = env.get("XDG_CACHE_HOME") or os.path.join(env.get("HOME", "/"), ".cache")
    installed = named or os.path.join(above, "ms-playwright")
    return {"PLAYWRIGHT_BROWSERS_PATH": installed} if named or os.access(installed, os.F_OK) else {}


def _is_in_any(path: str, folders: Sequence[str]) -> bool:
    return os.path.isabs(path) and any(is_inside(os.path.realpath(path), folder) for folder in folders)


class WorkspaceCaches:
    """The caches of one workspace, held by this session: nobody removes them meanwhile."""

    def __init__(self, place: str, workspace: str, *, most_bytes: int = MOST_BYTES) -> None:
        """`place`: a folder of ours with the caches of all workspaces. `workspace`: the real path of its first folder."""
        self._place = os.path.realpath(place)
        self._name = _name_of(workspace)
        self._most_bytes = most_bytes
        self._lock = -1
        self._stop = threading.Event()
        self._keeper: threading.Thread | None = None

    def open(self) -> str:
        """The folder, which is made if it is missing. What is too large, or not a folder of our own, is set aside first, unless another
        session uses it. Then caches that nobody needs any more are removed, in a thread. Raises OSError."""
        if self._lock < 0:
            make_directory(self._place)
            _require_own_folder(self._place)
            self._lock, is_alone = _lock_file(os.path.join(self._place, self._name + _ENDING))
            if is_alone and self._must_go():
                set_aside(self._place, self._name)
                set_aside(self._place, self._name + _READING)
                os.truncate(self._lock, 0)
            elif is_alone:  # layers of sessions that were killed
                set_aside(self.reading, "layers", self._place)
            lock_with_others(self._lock)
            os.utime(self._lock)
        folder = os.path.join(self._place, self._name)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        _require_own_folder(folder)
        with suppress(FileExistsError):
            os.mkdir(os.path.join(folder, _VARIABLES["XDG_CACHE_HOME"]), 0o700)
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="dragoman-caches", daemon=True)
            self._keeper.start()
        return folder

    @property
    def reading(self) -> str:
        """Where the layers of commands that only read are: see cache_layers.py."""
        return os.path.join(self._place, self._name + _READING)

    def close(self, wait_s: float = 0.0) -> None:
        """`wait_s`: so long for what is being removed; the rest is left to the next session."""
        if self._keeper is not None:
            self._keeper.join(wait_s)
            self._stop.set()
            self._keeper.join()
            self._keeper = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _must_go(self) -> bool:
        folder = os.path.join(self._place, self._name)
        try:
            _require_own_folder(folder)
        except OSError:
            return os.path.lexists(folder)
        return _read_numbers(self._lock)[0] > self._most_bytes

    def _keep(self) -> None:
        """In a thread. Nothing here is about a cache that a command could be using, but for the measuring of our own."""
        with suppress(OSError):
            for name in os.listdir(self._place):
                if name.endswith(_ENDING) and name != self._name + _ENDING:
                    self._set_unused_aside(name.removesuffix(_ENDING))
            for name in os.listdir(self._place):
                if name.startswith(ASIDE):
                    remove_tree(self._place, name, self._stop.is_set)
            if time.time() - _read_numbers(self._lock)[1] > MEASURED_AGAIN_S:
                sizes = [measure(self._place, name, self._most_bytes, self._stop.is_set) for name in (self._name, self._name + _READING)]
                if None not in sizes:
                    size = sum(filter(None, sizes))
                    os.pwrite(self._lock, b"%020d %020d\n" % (size, time.time()), 0)

    def _set_unused_aside(self, name: str) -> None:
        """If no session has used this workspace's caches for long."""
        path = os.path.join(self._place, name + _ENDING)
        with suppress(OSError):
            if self._stop.is_set() or time.time() - os.lstat(path).st_mtime < UNUSED_S:
                return
            descriptor, is_alone = _lock_file(path)
            try:
                if is_alone and time.time() - os.fstat(descriptor).st_mtime >= UNUSED_S:
                    set_aside(self._place, name)
                    set_aside(self._place, name + _READING)
                    os.unlink(path)
            finally:
                os.close(descriptor)


def forget_caches(place: str, workspace: str) -> None:
    """Remove the caches of a workspace that is no more, unless a session uses them. `workspace`: its real path."""
    place, name = os.path.realpath(place), _name_of(workspace)
    path = os.path.join(place, name + _ENDING)
    with suppress(OSError):
        if not os.path.lexists(path):
            return
        descriptor, is_alone = _lock_file(path)
        try:
            if is_alone:
                remove_tree(place, name)
                remove_tree(place, name + _READING)
                os.unlink(path)
        finally:
            os.close(descriptor)


def make_session_caches(private: str, owner: tuple[int, int] | None) -> str:
    """A folder for caches that end with the session, in its private folder. `owner`: who commands run as, where that is not us. Raises
    OSError."""
    folder = os.path.join(private, "caches")
    for path in (folder, os.path.join(folder, _VARIABLES["XDG_CACHE_HOME"])):
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
            if owner is not None:
                os.chown(path, *owner, follow_symlinks=False)
    return folder


def _name_of(workspace: str) -> str:
    return hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]


def _require_own_folder(path: str) -> None:
    """Raises OSError if it is a link, not a folder, or somebody else's."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise NotADirectoryError(0, "is not a folder of our own", path)


def _lock_file(path: str) -> tuple[int, bool]:
    """An open file that is locked for us alone, if that can be had. Raises OSError."""
    for _ in range(_TRIES):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        try:
            is_alone = False
            with suppress(Locked):
                is_alone = lock(descriptor, ())
            if os.path.samestat(os.fstat(descriptor), os.lstat(path)):  # else it was removed while we waited
                return descriptor, is_alone
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise FileNotFoundError(0, "is removed again and again", path)


def _read_numbers(descriptor: int) -> tuple[int, int]:
    """How many bytes a cache had, and when that was."""
    words = os.pread(descriptor, 64, 0).split()
    return (int(words[0]), int(words[1])) if len(words) == 2 and all(map(bytes.isdigit, words)) else (0, 0)
