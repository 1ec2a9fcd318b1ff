"""Where weights lie, what is there, and who may change it: one process at a time for each model."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.base.lock import Locked, lock
from dragoman.base.places import find_places
from dragoman.local.weights.faults import NotPulled
from dragoman.local.weights.models import MODELS, Model, named
from dragoman.values.errors import InputError

MAGIC = b"GGUF"
_LOOK_AGAIN_S = 0.2


def weights_folder(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path:
    """`weights` in the user's cache, as the program has it (DRAGOMAN_HOME, or the platform's own). It need not exist."""
    return Path(find_places(env, platform).weights)


def find(name: str, folder: Path | None = None) -> Path | None:
    """The file of a model, or None where it is not there yet. A path to a GGUF of the user's own is itself, used where it lies.

    `name` is one of MODELS or a path, with or without `local/` before it. Raises InputError for a name nobody knows, and for a path
    that is no GGUF.
    """
    if path := own_file(name):
        return path
    model = named(name)
    file = (folder or weights_folder()) / model.file_name
    try:
        return file if file.stat().st_size == model.bytes and _is_gguf(file) else None
    except OSError:
        return None


def own_file(name: str) -> Path | None:
    """The path that a name is, where it is one: what holds a slash, or ends with .gguf. Raises InputError where there is no GGUF."""
    text = name.strip().removeprefix("local/")
    if text.lower().removesuffix(".gguf") in MODELS or not ("/" in text or os.sep in text or text.lower().endswith(".gguf")):
        return None
    path = Path(os.path.abspath(os.path.expanduser(text)))
    require_gguf(path)
    return path


def require_gguf(path: Path) -> None:
    """Returns where it is one. Raises InputError."""
    try:
        if _is_gguf(path):
            return
    except OSError as error:
        raise InputError(f"{path} cannot be used as a model: {error.strerror or error}") from error
    raise InputError(f"{path} is not a GGUF file: a model must be in that format (it begins with the letters GGUF)")


def remove(name: str, folder: Path | None = None) -> int:
    """Delete a model's file and whatever a broken-off pull left of it, and return how many bytes that were.

    Raises InputError while somebody pulls it. A file of the user's own is never touched.
    """
    model, folder = named(name), folder or weights_folder()
    if not folder.is_dir():
        return 0
    descriptor = _locked(lock_file(model, folder))
    if descriptor is None:
        raise InputError(f"{model.name} is being pulled by another process: end that one first")
    try:
        freed = sum(map(_unlink, (folder / model.file_name, unfinished_file(model, folder))))
        shutil.rmtree(scratch_folder(model, folder), ignore_errors=True)
    finally:
        _release(descriptor, lock_file(model, folder))
    return freed


def unfinished_file(model: Model, folder: Path) -> Path:
    """What has come so far, each part at its place."""
    return folder / f"{model.file_name}.part"


def scratch_folder(model: Model, folder: Path) -> Path:
    """Packages on their way. Nothing in it is worth keeping."""
    return folder / f"{model.file_name}.tmp"


def lock_file(model: Model, folder: Path) -> Path:
    return folder / f"{model.file_name}.lock"


@asynccontextmanager
async def holding(model: Model, folder: Path, waiting: Callable[[], None]) -> AsyncGenerator[None, None]:
    """Hold a model's lock. While another process has it, `waiting` is called now and then."""
    path = lock_file(model, folder)
    try:
        while (descriptor := _locked(path)) is None:
            waiting()
            await asyncio.sleep(_LOOK_AGAIN_S)
    except OSError as error:
        raise NotPulled(f"{path} cannot be written: {error.strerror or error}") from error
    try:
        yield
    finally:
        _release(descriptor, path)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock, or None where another does. The system gives it up with the process."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if not lock(descriptor, ()) or os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except Locked:
            os.close(descriptor)
            return None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # whoever had it took the file away: that lock keeps nobody out


def _release(descriptor: int, path: Path) -> None:
    try:
        _unlink(path)
    finally:
        os.close(descriptor)


def _is_gguf(path: Path) -> bool:
    if not path.is_file():
        if path.exists():
            return False
        raise FileNotFoundError(2, "there is no such file", str(path))
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _unlink(path: Path) -> int:
    try:
        size = path.lstat().st_size
        path.unlink()
    except FileNotFoundError:
        return 0
    return size
