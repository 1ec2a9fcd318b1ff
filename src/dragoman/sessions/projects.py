"""Where sessions lie: `<root>/<project>/<session id>.jsonl`, a project for every folder that was worked in."""

from __future__ import annotations

import os

from dragoman.base.ids import is_session_id
from dragoman.base.text import as_typed
from dragoman.values.errors import InputError

_ENDING = ".jsonl"
_MAX_NAME_BYTES = 80
BLOBS = "blobs"
"""The folder in a project that its sessions share."""
OUTPUTS = "outputs"
"""Where, beside its log, a session keeps tool output that was too long for the model."""
LISTED = "`dragoman sessions list` shows those there are"


def is_log_name(name: str) -> bool:
    return name.endswith(_ENDING) and is_session_id(name.removesuffix(_ENDING))


def log_name(session_id: str) -> str:
    """The name of a session's log. Raises InputError for what is no id: whatever else was given, it never becomes part of a path."""
    if not is_session_id(session_id):
        raise InputError(
            f"{shown(session_id)} is not a session id: they look like 20261115-120102-1a2b3c4d; `dragoman sessions list` shows them"
        )
    return session_id + _ENDING


def session_id_of(path: str | os.PathLike[str]) -> str:
    """The id of the session whose log has this path."""
    return os.path.basename(path).removesuffix(_ENDING)


def project_hash(workspace: str | os.PathLike[str]) -> str:
    """Of a folder's real path: however it was reached, it is the same project."""
    from hashlib import sha256

    return sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()


def project_name(workspace: str | os.PathLike[str]) -> str:
    """The folder's own name, for people, and of its hash what keeps it apart from others of that name."""
    from unicodedata import normalize

    name = os.path.basename(os.path.realpath(workspace))
    readable = "".join(char if char.isalnum() or char in "._" else "-" for char in normalize("NFC", name)).strip("-.")
    short = readable.encode()[:_MAX_NAME_BYTES].decode(errors="ignore")
    return f"{short or 'folder'}-{project_hash(workspace)[:12]}"


def shown(text: str) -> str:
    """What somebody typed, safe to repeat in a message."""
    return f"'{as_typed(text)}'"
