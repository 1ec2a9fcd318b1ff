"""What a command gets of our environment: no secrets, and no program of the workspace in the place of one on PATH."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from dragoman.base.beneath import is_inside

_SECRET_WORDS = (
    "KEY", "TOKEN", "SECRET", "PASSW", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "CONNECTION_STRING", "WEBHOOK", "AUTH_CONFIG", "OP_SESSION_",
    "BW_SESSION",
)  # fmt: skip
_SECRET_ENDS = frozenset({"BEARER", "COOKIE", "COOKIES", "CRED", "CREDS", "JWT", "PAT", "PSWD", "PW"})
"""The last word of a name that means a secret: DB_PASS, MYSQL_PWD, GH_PAT. Not SSH_AUTH_SOCK."""
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
_SHORTEST_VALUE = 8
_PAINTING = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE", "COLORTERM"})
_SYSTEM = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"})


def child_environment(extra: Mapping[str, str] | None = None, secret: Collection[str] = ()) -> dict[str, str]:
    """Our environment for a command: without secrets, pagers and colours; then the user's `extra`, unfiltered.

    `secret` are names of further variables that hold secrets; another variable with the same value is left out too.
    """
    named = {name.upper() for name in secret}
    environment = dict(os.environ)
    values = {value for name, value in environment.items() if name.upper() in named and len(value) >= _SHORTEST_VALUE}
    inherited = {
        name: value
        for name, value in environment.items()
        if not (is_secret_name(name) or name.upper() in named or value in values or name in _PAINTING)
    }
    return {**inherited, "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb", **(extra or {})}


def pass_variables(names: Collection[str]) -> dict[str, str]:
    """The variables of our environment that the user lets through to commands, though they look like secrets."""
    return {name: os.environ[name] for name in names if name in os.environ}


def find_program(name: str, outside: str | Sequence[str]) -> str:
    """The absolute path of a program on PATH, or empty. Programs inside the workspace (`outside`) are never used."""
    folders = (outside,) if isinstance(outside, str) else outside
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(directory, name)
        if os.path.isabs(directory) and _is_executable(path) and (directory in _SYSTEM or not _is_beneath_any(path, folders)):
            return path
    return ""


def path_outside(folders: Sequence[str]) -> str:
    """PATH without what lies in these folders, and without what is not absolute."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [place for place in places if os.path.isabs(place) and (place in _SYSTEM or not _is_beneath_any(place, folders))]
    return os.pathsep.join(kept) or os.defpath


@lru_cache(1024)
def is_secret_name(name: str) -> bool:
    upper = name.upper()
    if upper in _NOT_SECRET or upper.endswith("ASKPASS"):  # a folder, or a program that asks
        return False
    last = upper.rstrip("0123456789_").rpartition("_")[2]
    return any(word in upper for word in _SECRET_WORDS) or last in _SECRET_ENDS or last.endswith(("AUTH", "PASS", "PWD"))


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_beneath_any(path: str, folders: Sequence[str]) -> bool:
    names = (os.path.realpath(path), os.path.abspath(path))
    return any(is_inside(each, os.path.realpath(folder)) for each in names for folder in folders)
