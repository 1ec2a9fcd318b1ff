"""Where our files are: everything under DRAGOMAN_HOME, or the platform's folders for configuration, data and caches."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple

APP = "dragoman"


class Places(NamedTuple):
    """Folders as absolute paths. They need not exist: `private.make_directory` creates one when something is written.

    A named tuple: the first frame of a conversation is drawn before msgspec is loaded."""

    config: str
    data: str
    cache: str

    @property
    def config_file(self) -> str:
        return os.path.join(self.config, "config.toml")

    @property
    def grants_file(self) -> str:
        """Calls the user has allowed permanently."""
        return os.path.join(self.data, "grants.jsonl")

    @property
    def trust_file(self) -> str:
        """Folders the user trusts, or said no to."""
        return os.path.join(self.data, "trust.jsonl")

    @property
    def hooks_file(self) -> str:
        """Hooks of projects that the user has agreed to, or said no to."""
        return os.path.join(self.data, "hooks.jsonl")

    @property
    def servers_file(self) -> str:
        """MCP servers of projects that the user has agreed to, or said no to."""
        return os.path.join(self.data, "mcp.jsonl")

    @property
    def commands_file(self) -> str:
        """When commands could write in which folders, and which files that configure agents the user believes as they are since then."""
        return os.path.join(self.data, "commands.jsonl")

    @property
    def fleets_file(self) -> str:
        """Fleets that the user has started here, or agreed to, with the hash of what each was started with."""
        return os.path.join(self.data, "fleets.jsonl")

    @property
    def server_lists(self) -> str:
        """What MCP servers offer, one file for each."""
        return os.path.join(self.cache, "mcp")

    @property
    def command_caches(self) -> str:
        """Caches of package managers and compilers that commands in the sandbox use, a folder for each workspace."""
        return os.path.join(self.cache, "commands")

    @property
    def decision_files(self) -> tuple[str, ...]:
        """What the user has said yes and no to."""
        return self.grants_file, self.trust_file, self.hooks_file, self.servers_file, self.commands_file, self.fleets_file

    @property
    def keys_file(self) -> str:
        """Keys stored by `dragoman auth add`. Not beside the configuration, which people publish with their dotfiles."""
        return os.path.join(self.data, "keys.json")

    @property
    def mcp_tokens_file(self) -> str:
        """Tokens and registrations from signing in to MCP servers."""
        return os.path.join(self.data, "mcp_tokens.json")

    @property
    def secret_files(self) -> tuple[str, ...]:
        """Files whose content nobody but us may read, wherever they lie."""
        return self.keys_file, self.mcp_tokens_file

    @property
    def prompt_history(self) -> str:
        """Prompts that were written in conversations, to bring them back."""
        return os.path.join(self.data, "prompts.jsonl")

    @property
    def memory_file(self) -> str:
        """What the model should remember in every session."""
        return os.path.join(self.config, "DRAGOMAN.md")

    @property
    def weights(self) -> str:
        """Weights of local models: large, and can be downloaded again."""
        return os.path.join(self.cache, "weights")

    @property
    def prompts(self) -> str:
        """The prompt cache of local models."""
        return os.path.join(self.cache, "prompts")

    @property
    def temporary(self) -> str:
        """Temporary files, in a folder for each project."""
        return os.path.join(self.data, "tmp")

    @property
    def sessions(self) -> str:
        """Conversations, one file each."""
        return os.path.join(self.data, "sessions")

    @property
    def named_files(self) -> tuple[str, ...]:
        """Every file and folder above by its own path: each may be a link to somewhere else."""
        return (
            *(self.config_file, self.memory_file, *self.decision_files, *self.secret_files),
            *(self.sessions, self.weights, self.prompts, self.server_lists),
        )


def find_places(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> Places:
    env = os.environ if env is None else env
    if home := env.get("DRAGOMAN_HOME", "").strip():
        home = os.path.abspath(os.path.expanduser(home))
        return Places(home, os.path.join(home, "data"), os.path.join(home, "cache"))
    if platform == "win32":
        return _windows(env)
    user = env.get("HOME") or os.path.expanduser("~")
    if platform == "darwin":
        library = os.path.join(user, "Library")
        support = os.path.join(library, "Application Support", APP)
        return Places(support, os.path.join(support, "data"), os.path.join(library, "Caches", APP))
    return Places(
        _xdg(env, "XDG_CONFIG_HOME", os.path.join(user, ".config")),
        _xdg(env, "XDG_DATA_HOME", os.path.join(user, ".local", "share")),
        _xdg(env, "XDG_CACHE_HOME", os.path.join(user, ".cache")),
    )


def temporary_folders(env: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Folders for temporary files, the one that the user has chosen first. Not all of them need exist."""
    env = os.environ if env is None else env
    chosen = (env.get(name, "") for name in ("TMPDIR", "TEMP", "TMP"))
    return tuple(folder for folder in (*chosen, "/tmp", "/var/tmp", env.get("XDG_RUNTIME_DIR", "")) if folder)


def _xdg(env: Mapping[str, str], name: str, otherwise: str) -> str:
    # The XDG specification says to ignore relative paths.
    named = env.get(name, "")
    return os.path.join(named if os.path.isabs(named) else otherwise, APP)


def _windows(env: Mapping[str, str]) -> Places:
    user = env.get("USERPROFILE") or os.path.expanduser("~")
    roaming = env.get("APPDATA") or os.path.join(user, "AppData", "Roaming")
    local = env.get("LOCALAPPDATA") or os.path.join(user, "AppData", "Local")
    return Places(os.path.join(roaming, APP), os.path.join(local, APP, "data"), os.path.join(local, APP, "cache"))


def running_code() -> tuple[str, ...]:
    """Where our own code lies, and everything it may still load: whoever changes that runs something in our process."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__))), sys.prefix, sys.base_prefix


def path_inside(path: str, folder: str) -> str:
    """As it is called from that folder, if it is in it."""
    return path[len(folder) + 1 :] if path.startswith(f"{folder}{os.sep}") else shorten_home(path)


def shorten_home(path: str) -> str:
    """With `~` for the user's own folder."""
    home = os.path.expanduser("~")
    return f"~{path[len(home) :]}" if path == home or path.startswith(f"{home}{os.sep}") else path
