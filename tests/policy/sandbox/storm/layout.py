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
    "agent files", "another owner",
)  # fmt: skip
"""What else is in it."""


class World(NamedTuple):
    """How the decoys lie."""

    place: str = "in home"
    form: str = "plain"
    traits: tuple[str, ...] = ()
