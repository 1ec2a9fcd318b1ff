"""Unpacks an archive that may be anybody's: nothing of it lands outside the folder, whatever names and links it holds.

`tarfile`'s own filter for data is not relied on: it checks paths by name, which long ones and links could get past in several versions of
Python that we support.
"""

from __future__ import annotations

import errno
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from contextlib import suppress
from typing import IO

from dragoman.base.beneath import open_directory

_NAMES_OF_NO_USE = (errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG)


def unpack(path: str, folder: str) -> None:
    """Unpack into a folder that exists. Links are kept as links; devices and pipes are left out.

    Raises ValueError where the archive is damaged or a name leads out, and OSError where the folder cannot be written."""
    try:
        if path.endswith(".zip"):
            _unpack_zip(path, folder)
        else:
            with tarfile.open(path) as packed:
                for member in packed:
                    _unpack_member(packed, member, folder)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib.error, NotImplementedError, RuntimeError) as error:
        raise ValueError(str(error) or type(error).__name__) from error
    except OSError as error:
        if error.errno in _NAMES_OF_NO_USE:
            raise ValueError(str(error)) from error
        raise


def _unpack_zip(path: str, folder: str) -> None:
    with zipfile.ZipFile(path) as archive:
        for each in archive.infolist():
            if each.is_dir():
                _make_folder(folder, _parts_of(each.filename))
                continue
            with archive.open(each) as content:
                _write(folder, _parts_of(each.filename), content, (each.external_attr >> 16) & 0o777 or 0o666)


def _unpack_member(packed: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    parts = _parts_of(member.name)
    if member.isdir():
        _make_folder(folder, parts)
    elif member.issym() and parts:
        with open_directory(os.path.join(folder, *parts[:-1]), create=True) as directory:
            with suppress(FileNotFoundError):
                directory.unlink(parts[-1])
            os.symlink(member.linkname, os.path.join(directory.path, parts[-1]))
    elif member.isreg() or member.islnk():
        try:
            content = packed.extractfile(member)
        except KeyError as error:
            raise ValueError(f"{member.name} is a link to what is not there") from error
        if content is not None:
            with content:
                _write(folder, parts, content, member.mode & 0o777)


def _parts_of(name: str) -> list[str]:
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} is no path inside the archive")
    return parts


def _make_folder(folder: str, parts: list[str]) -> None:
    with open_directory(os.path.join(folder, *parts), create=True):
        pass


def _write(folder: str, parts: list[str], content: IO[bytes], mode: int) -> None:
    if not parts:
        raise ValueError("a file without a name")
    with open_directory(os.path.join(folder, *parts[:-1]), create=True) as directory:
        with suppress(FileNotFoundError):
            directory.unlink(parts[-1])
        with os.fdopen(directory.create(parts[-1], 0o600), "wb") as file:
            shutil.copyfileobj(content, file)
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), mode | 0o600)
