"""The approval rules, pure and synchronous: decide from a call's intent and the mode whether it may run."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman.values.contracts import Allow, Deny, Intent
from dragoman.values.messages import ToolSpec

Mode = Literal["plan", "default", "auto-edit"]
"""plan: read only. default: ask for writes and commands. auto-edit: run edits inside the workspace, ask for the rest."""


class MustAsk(msgspec.Struct, frozen=True):
    """The user decides; `view` is what they are shown."""

    view: Intent


def judge(spec: ToolSpec, intent: Intent, mode: Mode, granted: frozenset[str] = frozenset()) -> Allow | MustAsk | Deny:
    """`granted` holds the keys (see `grant_key`) of what the user has allowed from now on. What is guarded asks nevertheless."""
    if spec.read_only:
        return Allow()
    if mode == "plan":
        return Deny(f"plan mode only reads: {spec.name} was not run")
    if intent.guarded:
        return MustAsk(intent)
    if any(is_guarded(path) for path in intent.writes):
        return MustAsk(msgspec.structs.replace(intent, guarded="trusted"))
    if mode == "auto-edit" and spec.kind == "edit" and intent.writes:
        return Allow()
    if grant_key(spec, intent) in granted:
        return Allow()
    return MustAsk(intent)


def grant_key(spec: ToolSpec, intent: Intent) -> str:
    """What `always` covers: all edits, this exact command, this tool, or this tool with this host."""
    if spec.kind == "edit":
        return "edit"
    if intent.scope:
        return f"{spec.name} {intent.scope}"
    if spec.kind == "execute":
        return f"{spec.name} {intent.preview}"
    return spec.name if spec.name != "edit" else "edit (a tool)"  # somebody's tool of that name must not stand for all edits


_FOLDERS = {".git", ".dragoman", ".vscode", ".idea", ".husky"}
_FILES = {
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".inputrc",
    ".gitconfig", ".gitmodules", ".envrc", ".netrc", ".npmrc", ".pypirc", "agents.md", "dragoman.md", "gemini.md", "claude.md",
}  # fmt: skip


def is_guarded(path: str) -> bool:
    """Files that make something else run, or that are trusted later: writing them always needs approval."""
    # Some file systems do not tell upper case from lower: there .GIT is .git.
    parts = path.replace("\\", "/").lower().split("/")
    return not _FOLDERS.isdisjoint(parts) or parts[-1] in _FILES
