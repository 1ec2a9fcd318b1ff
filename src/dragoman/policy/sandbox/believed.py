"""Files that are read as configuration when a project is opened again: ours, and those of programs whose hooks and servers we start.

What exists of it is read-only for commands where the sandbox can do that. A name that was not there cannot be covered: what a command
makes or changes under such a name is told, and not believed at the next start before the user was asked (policy/trust.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from dragoman.base.beneath import is_inside

OWN_FOLDER = ".dragoman"
FOLDERS = (OWN_FOLDER, ".agents", ".claude", ".codex", ".gemini", ".opencode")
"""Ours, and those of other programs."""
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
    return [os.path.join(root, name) for name in (*FOLDERS, *FILES)]
