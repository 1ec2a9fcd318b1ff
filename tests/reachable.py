"""Python with our modules and test programs, where another user gets to them and no private /tmp covers them: in place, else as a copy.

The checkout may lie in a home that only its owner may enter, or beneath /tmp, which the sandbox and the cage of the storms replace.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from dragoman.base.beneath import is_inside

TESTS = Path(__file__).resolve().parent
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
_COVERED = ("/tmp", "/var/tmp", "/run", "/dev")
_PLACES = ("/var/cache", "/var/lib", "/opt", "/srv", "~")
_MODULES = ("dragoman", "msgspec", "tree_sitter", "tree_sitter_bash")
_OF_PYTEST = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py")
"""What `python3 -m pytest` needs, one of the tools that are tried in the sandbox."""
_VERSION = f"python{sys.version_info[0]}.{sys.version_info[1]}"
_TRY = """
import ctypes, os, sys, dragoman.policy.sandbox.sandbox, tree_sitter_bash
open(sys.argv[1]).close()
os.execv(sys.executable, [sys.executable, "-c", ""])
"""
_PROGRAM = Path("policy", "sandbox", "escape_runner.py")


class Reachable(NamedTuple):
    """What whoever runs a test program needs."""

    python: str
    """The real path of an interpreter, which runs outside any virtual environment."""
    modules: tuple[str, ...]
    """For its PYTHONPATH: what has our modules, and those that we need."""
    tests: Path
    """Has the test programs, by the paths that they have in tests/."""

    @property
    def sandbox_programs(self) -> Path:
        return self.tests / "policy" / "sandbox"

    @property
    def all_modules(self) -> str:
        """The value of PYTHONPATH for a program that imports other test code."""
        return os.pathsep.join((*self.modules, str(self.tests)))


@cache
def find_reachable(prefix: tuple[str, ...] = (), *, pythons: tuple[str, ...] = ()) -> Reachable:
    """`prefix`: the command that changes the user. `pythons`: interpreters to try instead of those of this machine. Skips the test where
    no place can be found."""
    pythons = pythons or (sys.executable, f"/usr/bin/{_VERSION}", f"/usr/local/bin/{_VERSION}")
    found = _first_working(prefix, pythons, _modules_in_place(), TESTS)
    for place in () if found else map(os.path.expanduser, _PLACES):
        if os.access(place, os.W_OK) and not _is_covered(place):
            copy = _copy_to(place)
            found = _first_working(prefix, pythons, (str(copy / "modules"),), copy / "tests")
            found = found or _first_working(prefix, (_copy_interpreter(copy),), (str(copy / "modules"),), copy / "tests")
            if found:
                break
    return found or pytest.skip("no place was found where another user gets to an interpreter and our modules")


def _first_working(prefix: tuple[str, ...], pythons: tuple[str, ...], modules: tuple[str, ...], tests: Path) -> Reachable | None:
    for python in map(os.path.realpath, pythons):
        if any(map(_is_covered, (python, *modules, str(tests)))):
            continue
        argv = [*prefix, python, "-B", "-c", _TRY, str(tests / _PROGRAM)]
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(modules)}
        try:
            if subprocess.run(argv, capture_output=True, env=env, cwd="/", check=False).returncode == 0:
                return Reachable(python, modules, tests)
        except OSError:
            continue
    return None


@contextmanager
def folder_outside_temporary() -> Iterator[Path]:
    """Make a folder as people have it: outside the temporary folders, of which commands in the sandbox see only what is theirs."""
    for place in ("~", *_PLACES, str(TESTS.parent.parent)):
        folder = os.path.expanduser(place)
        if not _is_covered(folder) and os.access(folder, os.W_OK):
            with TemporaryDirectory(prefix="dragoman-test-", dir=folder) as made:
                yield Path(made)
            return
    pytest.skip("there is no folder to write in outside /tmp and /var/tmp")


def _is_covered(path: str) -> bool:
    return any(is_inside(os.path.realpath(path), each) for each in _COVERED)


def _module_folder(name: str) -> str:
    spec = find_spec(name)
    assert spec is not None
    assert spec.submodule_search_locations
    return spec.submodule_search_locations[0]


def _modules_in_place() -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.dirname(_module_folder(name)) for name in _MODULES))


@cache
def _copy_to(place: str) -> Path:
    """Copies our modules, those that they need and the test programs, for everybody to read. The copy goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-test-", dir=place))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in _MODULES:
        _copy_tree(_module_folder(name), folder / "modules" / name)
    for spec in filter(None, map(find_spec, _OF_PYTEST)):
        assert spec.origin is not None
        if spec.submodule_search_locations:
            _copy_tree(spec.submodule_search_locations[0], folder / "modules" / spec.name)
        else:
            shutil.copy(spec.origin, folder / "modules")
    (folder / "tests").mkdir()
    _copy_tree(str(TESTS / "policy"), folder / "tests" / "policy")
    for path in TESTS.glob("*.py"):
        shutil.copyfile(path, folder / "tests" / path.name)
    _open_for_all(folder)
    return folder


@cache
def _copy_interpreter(folder: Path) -> str:
    """Copies the interpreter and its standard library: where the only one lies in a home that nobody else may enter."""
    source = Path(sys.base_prefix)
    place = folder / "python"
    _copy_tree(os.path.dirname(os.__file__), place / "lib" / _VERSION, "site-packages", "test", "idlelib", "config-*", "ensurepip")
    for library in source.glob("lib/libpython*.so*"):
        shutil.copyfile(library, place / "lib" / library.name)
    (place / "bin").mkdir()
    program = place / "bin" / _VERSION
    shutil.copyfile(os.path.realpath(sys.executable), program)
    _open_for_all(place)
    program.chmod(0o755)
    return str(program)


def _copy_tree(source: str, place: Path, *without: str) -> None:
    shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__", *without))


def _open_for_all(folder: Path) -> None:
    """Whatever our umask is, and the modes of a checkout in somebody's home."""
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
