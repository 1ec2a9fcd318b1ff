"""Where weights are stored, which are there, and a lock per model: one process at a time may change it."""

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
from dragoman.local.weights.models import MODELS, LocalModel, get_model
from dragoman.values.errors import InputError
from dragoman.words import say

MAGIC = b"GGUF"
_LOOK_AGAIN_S = 0.2


def weights_folder(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> Path:
    """`weights` in the program's cache folder (DRAGOMAN_HOME, or the platform's default). It need not exist."""
    return Path(find_places(env, platform).weights)


def find(name: str, folder: Path | None = None) -> Path | None:
    """The file of a model, or None if it has not been pulled. A path to the user's own GGUF file is returned as it is.

    `name` is one of MODELS or a path, with or without the prefix `local/`. Raises InputError for an unknown name and for a path that
    is not a GGUF file.
    """
    if path := own_file(name):
        return path
    model = get_model(name)
    file = (folder or weights_folder()) / model.file_name
    try:
        return file if file.stat().st_size == model.bytes and _is_gguf(file) else None
    except OSError:
        return None


def own_file(name: str) -> Path | None:
    """The name as a path if it is one (it has a slash or ends with .gguf), else None. Raises InputError if that is not a GGUF file."""
    text = name.strip().removeprefix("local/")
    if text.lower().removesuffix(".gguf") in MODELS or not ("/" in text or os.sep in text or text.lower().endswith(".gguf")):
        return None
    path = Path(os.path.abspath(os.path.expanduser(text)))
    require_gguf(path)
    return path


def require_gguf(path: Path) -> None:
    """Raises InputError unless it is a GGUF file."""
    try:
        if _is_gguf(path):
            return
    except OSError as error:
        raise InputError(say("local.file_unusable", path=path, reason=error.strerror or error)) from error
    raise InputError(say("local.file_not_gguf", path=path))


def remove(name: str, folder: Path | None = None) -> int:
    """Delete a model's file and what an unfinished pull left, and return the number of bytes freed.

    Raises InputError while another process pulls it. The user's own files are never touched.
    """
    model, folder = get_model(name), folder or weights_folder()
    if not folder.is_dir():
        return 0
    descriptor = _try_lock(lock_file(model, folder))
    if descriptor is None:
        raise InputError(say("local.being_pulled", model=model.name))
    try:
        freed = sum(map(_unlink, (folder / model.file_name, unfinished_file(model, folder))))
        shutil.rmtree(scratch_folder(model, folder), ignore_errors=True)
    finally:
        _release(descriptor, lock_file(model, folder))
    return freed


def unfinished_file(model: LocalModel, folder: Path) -> Path:
    """The partial download, each part at its final offset."""
    return folder / f"{model.file_name}.part"


def scratch_folder(model: LocalModel, folder: Path) -> Path:
    """Packages being downloaded. Nothing in it is worth keeping."""
    return folder / f"{model.file_name}.tmp"


def lock_file(model: LocalModel, folder: Path) -> Path:
    return folder / f"{model.file_name}.lock"


@asynccontextmanager
async def hold_lock(model: LocalModel, folder: Path, waiting: Callable[[], None]) -> AsyncGenerator[None, None]:
    """Hold a model's lock. While another process holds it, `waiting` is called regularly."""
    path = lock_file(model, folder)
    try:
        while (descriptor := _try_lock(path)) is None:
            waiting()
            await asyncio.sleep(_LOOK_AGAIN_S)
    except OSError as error:
        raise NotPulled(say("local.not_writable", path=path, reason=error.strerror or error)) from error
    try:
        yield
    finally:
        _release(descriptor, path)


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, or None if another process does. The system releases it with the process."""
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
        os.close(descriptor)  # the previous holder removed the file: a lock on it protects nothing


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
