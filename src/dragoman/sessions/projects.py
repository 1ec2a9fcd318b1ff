"""Where sessions are stored: `<root>/<project>/<session id>.jsonl`, with one project for each folder that was worked in."""

from __future__ import annotations

import os
from hashlib import sha256
from unicodedata import normalize

from dragoman.base.ids import is_session_id
from dragoman.base.text import printable_input
from dragoman.values.errors import InputError
from dragoman.words import say

_ENDING = ".jsonl"
_MAX_NAME_BYTES = 80
BLOBS = "blobs"
"""The folder in a project that its sessions share."""
OUTPUTS = "outputs"
"""The folder beside its log where a session stores tool output that was too long for the model."""
WRITING = "writing"
"""The folder beside its log where an open session notes in which folders it makes temporary files."""


def is_log_name(name: str) -> bool:
    return name.endswith(_ENDING) and is_session_id(name[: -len(_ENDING)])


def log_name(session_id: str) -> str:
    """The file name of a session's log. Raises InputError if the id is not valid, so arbitrary text never becomes part of a path."""
    if not is_session_id(session_id):
        raise InputError(say("sessions.not_an_id", name=quote_typed(session_id)))
    return session_id + _ENDING


def log_paths(root: str) -> list[str]:
    """The paths of all logs under the root, of every project. Nothing is read but the folders themselves."""
    projects = [entry.path for entry in scan_directory(root) if entry.is_dir(follow_symlinks=False)]
    return [entry.path for project in projects for entry in scan_directory(project) if is_log_name(entry.name)]


def session_id_of(path: str | os.PathLike[str]) -> str:
    """The id of the session whose log has this path."""
    return os.path.basename(path).removesuffix(_ENDING)


def check_path(path: str | os.PathLike[str]) -> str:
    """The path as text. Raises InputError where nothing can be called so: half a surrogate pair is no character of a name."""
    text = os.fspath(path)
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError as error:
        raise InputError(say("sessions.path_not_text", path=quote_typed(text), position=error.start + 1)) from error
    if b"\0" in encoded:
        raise InputError(say("sessions.path_not_text", path=quote_typed(text), position=text.index("\0") + 1))
    return text


def check_key(key: str) -> str:
    """A key under which a session can be found again. Raises InputError for one that is not Unicode text: two would become the same."""
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InputError(say("sessions.key_not_text", key=quote_typed(key), position=error.start + 1)) from error
    return key


def project_hash(workspace: str | os.PathLike[str]) -> str:
    """The hash of a folder's real path: the project is the same however the folder was reached."""
    return sha256(os.fsencode(os.path.realpath(check_path(workspace)))).hexdigest()


def project_name(workspace: str | os.PathLike[str]) -> str:
    """The folder's own name, for readability, and a piece of its hash that keeps it apart from others of the same name."""
    name = os.path.basename(os.path.realpath(check_path(workspace)))
    readable = "".join(char if char.isalnum() or char in "._" else "-" for char in normalize("NFC", name)).strip("-.")
    short = readable.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
    return f"{short or 'folder'}-{project_hash(workspace)[:12]}"


def quote_typed(text: str) -> str:
    """Text that someone typed, quoted so that it is safe to repeat in a message."""
    return f"'{printable_input(text)}'"


def scan_directory(folder: str) -> list[os.DirEntry[str]]:
    """What is in a folder; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []
