"""Files that are read as configuration when a project is opened again: ours, and those of programs whose hooks and servers we start.

What exists of it is read-only for commands where the sandbox can do that. A name that was not there cannot be covered: what a command
makes under such a name is moved aside afterwards, so that nothing reads it before the user has seen it.
"""

from __future__ import annotations

import os

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


def believed_in(root: str) -> list[str]:
    """Whether they exist or not."""
    return [os.path.join(root, name) for name in (OWN_FOLDER, *PARTS, *FILES)]


def parts_of(path: str) -> list[str]:
    """What of one of them is read: the whole, or what is read in the folder, where that is one."""
    names = PARTS.get(os.path.basename(path), ()) if os.path.isdir(path) and not os.path.islink(path) else ()
    return [os.path.join(path, name) for name in names] or [path]
