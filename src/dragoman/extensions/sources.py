"""Which folders hold extensions: ours and those of Claude Code, Codex, gemini-cli and opencode, the user's and the project's.

A project's folders are named only where the project is trusted. Nothing is opened here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

import msgspec

from dragoman.base.beneath import is_inside
from dragoman.values.origin import Program, Tier

PROGRAMS: tuple[Program, ...] = ("dragoman", "agents", "claude", "codex", "gemini", "opencode")
ROOT_VARIABLES = ("CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT", "extensionPath")
"""What the folder of a plugin is called in its own files."""


class ProgramFolder(msgspec.Struct, frozen=True):
    """A folder in which a program keeps what configures it."""

    program: Program
    tier: Tier
    path: str
    """As `~/.claude`, or `.claude` in a project. It need not exist."""
    project: str = ""
    """The project's folder it lies in; empty for the user's own."""
    root: str = ""
    """The topmost trusted folder around the project: mostly its repository. Empty for the user's own."""

    @property
    def within(self) -> str:
        """What links must not lead out of; empty: they may lead anywhere."""
        return self.root or self.project

    def leads_out(self, path: str = "") -> bool:
        """Whether it, or a file of it, is or lies behind a link that leads out of what the user trusts."""
        return bool(self.within) and not is_inside(os.path.realpath(path or self.path), os.path.realpath(self.within))


def fill_root(text: str, root: str) -> str:
    """With the plugin's folder where its variables stand, and the sign between folders for gemini-cli's `${/}`."""
    for name in ROOT_VARIABLES if root else ():
        text = text.replace(f"${{{name}}}", root)
    return text.replace("${/}", os.sep) if root else text


def user_folders(env: Mapping[str, str], own: str) -> tuple[ProgramFolder, ...]:
    """The user's own folders, `own` being ours, in the order in which they are read: the first that has a name wins."""
    home = env.get("HOME") or os.path.expanduser("~")
    paths: dict[Program, str] = {
        "dragoman": own,
        "agents": os.path.join(home, ".agents"),
        "claude": env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"),
        "codex": env.get("CODEX_HOME") or os.path.join(home, ".codex"),
        "gemini": os.path.join(home, ".gemini"),
        "opencode": os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "opencode"),
    }
    return tuple(ProgramFolder(program, "user", path) for program, path in paths.items())


def project_folders(projects: Sequence[str]) -> tuple[ProgramFolder, ...]:
    """The programs' folders in trusted projects, given from the root down; what is nearest to the working directory is read first, and
    wins."""
    return tuple(
        ProgramFolder(program, "project", os.path.join(project, f".{program}"), project, projects[0])
        for project in reversed(projects)
        for program in PROGRAMS
    )


def all_folders(env: Mapping[str, str], own: str, projects: Sequence[str], switched_off: Collection[str] = ()) -> tuple[ProgramFolder, ...]:
    """The project's folders and then the user's, without those of programs that are switched off, and none twice.

    A folder that is a link out of the project is among them: `leads_out` says so, and what lies behind it is not read.
    """
    users = user_folders(env, own)
    known = {os.path.realpath(folder.path) for folder in users}
    found = [folder for folder in project_folders(projects) if os.path.realpath(folder.path) not in known]
    return tuple(folder for folder in (*found, *users) if folder.program not in switched_off)
