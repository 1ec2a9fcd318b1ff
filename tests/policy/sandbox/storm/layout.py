"""How a world can lie: where the workspace is, what its `.git` is, and what else is in it."""

from __future__ import annotations

from typing import NamedTuple

PLACES = (
    "in home", "is home", "holds home", "temporary folder inside", "in the temporary folder", "is the temporary folder", "in /tmp",
    "by a link", "linked worktree", "our worktree",
)  # fmt: skip
"""Where the workspace lies."""
FORMS = ("plain", "link inside", "link outside", "separate inside", "separate outside", "linked hooks", "linked hook", "none")
"""What its `.git` is."""
TRAITS = (
    "nested", "deep nested", "submodule", "bare", "hooks path", "husky", "absent hooks path", "hard links", "xdg inside", "many folders",
    "agent files", "another owner", "dotfiles", "neighbour", "passes for a toolchain", "no hooks",
)  # fmt: skip
"""What else is in it."""
WAYS = ("auto", "default, yes", "default, for the session", "default, no", "plan")
"""The mode, and what the person says when a command wants to write."""
UNTOUCHED = ("default, no", "plan")
"""In which nothing changes, in the workspace either."""
HOST_PORT, NEIGHBOUR_PORT = 47001, 47002
"""Where a server of the host listens, and one of another session. No command reaches them."""


class World(NamedTuple):
    """How the decoys lie."""

    place: str = "in home"
    form: str = "plain"
    traits: tuple[str, ...] = ()
    way: str = "auto"
    """How commands are judged."""
