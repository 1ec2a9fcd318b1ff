"""Deleting sessions: the log, the files beside it, and the blobs that no other session uses. An open session is never deleted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Set

import msgspec

from dragoman.base.beneath import remove_flat_folder
from dragoman.base.private import sync_directory
from dragoman.sessions.blobs import is_digest
from dragoman.sessions.lock import InUse, hold_lock
from dragoman.sessions.projects import BLOBS, OUTPUTS, is_log_name
from dragoman.sessions.summary import open_log
from dragoman.values.errors import InputError

_DIGEST = re.compile(rb"[0-9a-f]{64}")
_PIECE_BYTES = 1 << 20


class Removal(msgspec.Struct, frozen=True):
    """What was deleted."""

    session_ids: tuple[str, ...] = ()
    blobs: int = 0
    freed_bytes: int = 0
    notice: str = ""
    """Why something that is due was kept."""


def remove(directory: str, session_ids: Iterable[str], *, skip_open: bool = False) -> Removal:
    """Delete sessions of one project directory. An open one is skipped, or raises InUse before any of its files is touched."""
    removed: list[str] = []
    named: set[str] = set()
    freed = 0
    stored = _blobs_of(directory)
    try:
        for session_id in session_ids:
            try:
                bytes_freed, digests = _remove_files(directory, session_id, look_for_blobs=bool(stored))
            except (InUse, FileNotFoundError):
                if not skip_open:
                    raise
                continue
            removed.append(session_id)
            freed += bytes_freed + remove_outputs(os.path.join(directory, OUTPUTS, session_id))
            named |= stored & digests
    finally:
        blobs, blob_bytes = _remove_blobs(directory, named)
        if removed:
            sync_directory(directory)
    return Removal(tuple(removed), blobs, freed + blob_bytes)


def _remove_files(directory: str, session_id: str, *, look_for_blobs: bool) -> tuple[int, set[str]]:
    """Delete the log and the files beside it. Returns how many bytes they had, and everything in them that may name a blob."""
    log = os.path.join(directory, f"{session_id}.jsonl")
    with hold_lock(log):
        files = [log, *side_files(directory, session_id)]
        digests = {digest for file in files for digest in _digests_in(file)} if look_for_blobs else set[str]()
        # The log goes first: if we are stopped here, blobs are left over, rather than a session without its blobs.
        return sum(map(_unlink, files)), digests


def remove_outputs(folder: str) -> int:
    """Delete the tool output stored for a session. A link in the folder's place is not followed."""
    above, name = os.path.split(folder)
    try:
        return remove_flat_folder(os.path.join(os.path.realpath(above), name))
    except NotADirectoryError:
        return 0


def side_files(directory: str, session_id: str) -> list[str]:
    """The files beside a log that share its name: torn tails that were cut off."""
    names = os.listdir(directory)
    return [os.path.join(directory, name) for name in names if name.startswith(f"{session_id}.") and not is_log_name(name)]


def _remove_blobs(directory: str, candidates: Set[str]) -> tuple[int, int]:
    """Delete those blobs that no file of the project names, readable or not. Returns how many, and their bytes.

    While another session is open they stay: it may have stored a blob and not named it yet.
    """
    if not candidates:
        return 0, 0
    before = set(os.listdir(directory))
    unnamed = set(candidates)
    for name in before:
        unnamed.difference_update(_digests_in(os.path.join(directory, name)))
        if not unnamed:
            return 0, 0
    if any(_is_open(os.path.join(directory, name)) for name in before if is_log_name(name)):
        return 0, 0
    if set(os.listdir(directory)) - before:
        return 0, 0  # a session began while we were looking
    return len(unnamed), sum(_unlink(os.path.join(directory, BLOBS, digest)) for digest in unnamed)


def _blobs_of(directory: str) -> set[str]:
    try:
        return set(filter(is_digest, os.listdir(os.path.join(directory, BLOBS))))
    except OSError:
        return set()


def _digests_in(path: str) -> Iterator[str]:
    """Everything in a file that may name a blob. Lines are not parsed, so that damaged ones count too."""
    try:
        with open_log(path) as file:
            kept = b""
            while piece := file.read(_PIECE_BYTES):
                kept += piece
                yield from (found.decode() for found in _DIGEST.findall(kept))
                kept = kept[-63:]
    except OSError:
        return  # a directory, a link, or deleted


def _is_open(path: str) -> bool:
    try:
        with hold_lock(path):
            return False
    except InUse:
        return True
    except (OSError, InputError):
        return False


def _unlink(path: str) -> int:
    """Delete a file and return its size; 0 if there is none."""
    try:
        size = os.lstat(path).st_size
        os.unlink(path)
    except FileNotFoundError:
        return 0
    return size
