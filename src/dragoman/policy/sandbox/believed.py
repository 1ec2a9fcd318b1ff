"""Files that are read as configuration when a project is opened again: ours, and those of programs whose hooks and servers we start.

What exists of it is read-only for commands where the sandbox can do that. A name that was not there cannot be covered: what a command
makes under such a name is moved aside afterwards, so that nothing reads it before the user has seen it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from dragoman.base.beneath import is_inside

OWN_FOLDER = ".dragoman"
PARTS: dict[str, tuple[str, ...]] = {
    ".agents": ("plugins", "skills"),
    ".claude": ("agents", "commands", "hooks", "settings.json", "settings.local.json", "skills"),
    ".codex": ("config.toml", "hooks.json", "rules", "skills"),
    ".gemini": ("agents", "commands", "extensions", "settings.json", "skills"),
    ".opencode": ("agent", "agents", "command", "commands", "opencode.json", "opencode.jsonc", "skills"),
}
"""Folders of other programs, and what is read in them. They may hold much else: Claude Code keeps whole worktrees in its own."""
FILES = (".claude-plugin", ".claude.json", ".mcp.json", "gemini-extension.json", "opencode.json", "opencode.jsonc")


START_FILES = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin",
    ".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".xsession", ".pam_environment", ".gitconfig",
    ".config/git/config", ".config/fish/config.fish", ".config/autostart", ".config/systemd/user", ".config/environment.d", ".vimrc",
    ".exrc", ".config/nvim/init.vim", ".config/nvim/init.lua", ".emacs", ".tmux.conf", ".ssh/rc", ".ssh/config", ".ssh/authorized_keys",
    "Library/LaunchAgents",
)  # fmt: skip
"""What the user's shell, git, editor or desktop runs by itself, in a home directory that is a workspace, or lies in one."""


def start_files(homes: Iterable[str], roots: Sequence[str]) -> list[str]:
    """Whether they exist or not, and where links among them lead in the workspace."""
    named = [os.path.join(os.path.realpath(home), name) for home in homes if home for name in START_FILES]
    found = dict.fromkeys(path for each in named for path in (each, os.path.realpath(each)))
    return [path for path in found if any(is_inside(path, root) for root in roots)]


def believed_in(root: str) -> list[str]:
    """Whether they exist or not."""
    return [os.path.join(root, name) for name in (OWN_FOLDER, *PARTS, *FILES)]


def parts_of(path: str) -> list[str]:
    """What of one of them is read: the whole, or what is read in the folder, where that is one."""
    names = PARTS.get(os.path.basename(path), ()) if os.path.isdir(path) and not os.path.islink(path) else ()
    return [os.path.join(path, name) for name in names] or [path]
