"""A folder as bytes, for machines that share no file system: packed and unpacked without following a link."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Sequence
from typing import IO

from dragoman.base.beneath import open_directory
from dragoman.base.private import write_whole
from dragoman.fleet.folder import is_fleet
from dragoman.fleet.workspace import paths_within
from dragoman.values.errors import InputError
from dragoman.words import say

_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"))
_FOLDER = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))
_DEEPEST = 400
_PIECE_BYTES = 1 << 20


def pack_tree(path: str, left_out: Sequence[str] = ()) -> bytes:
    """Files, folders and links as they are; pipes, sockets, devices and fleets are left out, and so is what has one of these real paths.
    Equal folders give equal bytes."""
    packed = io.BytesIO()
    top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
            _pack_folder(archive, top, "", 0, paths_within(path, left_out))
    finally:
        os.close(top)
    return packed.getvalue()


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _pack_folder(archive: tarfile.TarFile, folder: int, prefix: str, depth: int, left_out: frozenset[str]) -> None:
    if depth > _DEEPEST:
        raise InputError(say("fleet.too_deep", most=_DEEPEST))
    for name in sorted(os.listdir(folder)):
        if prefix + name in left_out:
            continue
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        member = tarfile.TarInfo(prefix + name)
        member.mode, member.mtime = stat.S_IMODE(status.st_mode) & 0o777, int(status.st_mtime)
        if stat.S_ISLNK(status.st_mode):
            member.type, member.linkname = tarfile.SYMTYPE, os.readlink(name, dir_fd=folder)
            archive.addfile(member)
        elif stat.S_ISDIR(status.st_mode):
            if is_fleet(name, folder):
                continue
            member.type = tarfile.DIRTYPE
            archive.addfile(member)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            try:
                _pack_folder(archive, inner, f"{prefix}{name}/", depth + 1, left_out)
            finally:
                os.close(inner)
        elif stat.S_ISREG(status.st_mode):
            with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
                member.size = os.fstat(file.fileno()).st_size
                archive.addfile(member, file)


def unpack_tree(data: bytes, folder: str) -> None:
    """Make the folder with what `pack_tree` packed. Raises OSError where it exists, and where a member would lead out of it."""
    os.mkdir(folder, 0o700)
    modes: list[tuple[str, int]] = []
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
        for member in archive:
            if not _is_inner_path(member.name):
                raise OSError(f"{member.name!r} is no path inside the workspace")
            above, _, name = member.name.rpartition("/")
            with open_directory(os.path.join(folder, *above.split("/")) if above else folder) as directory:
                path = os.path.join(directory.path, name)
                if member.issym():
                    os.symlink(member.linkname, path)
                elif member.isdir():
                    os.mkdir(path, 0o700)
                    modes.append((path, member.mode | 0o700))
                elif (content := archive.extractfile(member)) is not None:
                    _write(directory.create(name, 0o600), content, member)
    for path, mode in reversed(modes):
        os.chmod(path, mode)


def _is_inner_path(path: str) -> bool:
    return "\0" not in path and not any(part in ("", ".", "..") for part in path.split("/"))


def _write(descriptor: int, content: IO[bytes], member: tarfile.TarInfo) -> None:
    try:
        while piece := content.read(_PIECE_BYTES):
            write_whole(descriptor, piece)
        os.fchmod(descriptor, member.mode)
        os.utime(descriptor, (member.mtime, member.mtime))
    finally:
        os.close(descriptor)
