"""Where people keep keys, passwords and tokens: no command in the sandbox reads them, and no tool of ours, whatever the workspace is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from dragoman.base.beneath import is_inside

SECRETS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".password-store", ".mozilla", ".thunderbird", ".1password",
    ".netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token", ".s3cfg", ".boto", ".authinfo",
    ".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history", ".mysql_history",
    ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/git/credentials", ".config/rclone",
    ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/doctl", ".config/heroku", ".config/sops",
    ".local/share/keyrings", ".local/share/kwalletd", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
    ".m2/settings.xml", ".gradle/gradle.properties", ".terraform.d/credentials.tfrc.json", ".composer/auth.json",
    ".cache/huggingface/token", ".huggingface/token", ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json",
    ".local/share/fish/fish_history", ".irb_history", ".sqlite_history", ".rediscli_history", ".mongosh", ".lesshst", ".viminfo",
    ".subversion/auth", ".config/containers/auth.json", ".config/github-copilot", ".config/stripe", ".config/ngrok", ".ngrok2",
    ".config/configstore", ".config/netlify", ".config/.wrangler", ".config/fly", ".fly/config.yml", ".config/solana", ".config/age",
    ".terraformrc", ".databrickscfg", ".snowsql/config", ".dbt/profiles.yml", ".kaggle/kaggle.json", ".msmtprc", ".fetchmailrc", ".pki",
    ".local/share/uv/credentials", ".local/share/gem/credentials", ".config/pypoetry/auth.toml",
    ".bitcoin", ".ethereum", ".electrum", ".local/share/mkcert", ".config/Signal", ".config/Slack", ".config/discord", ".config/vivaldi",
    ".config/microsoft-edge", ".config/opera", ".var/app", "snap/firefox", ".qwen/oauth_creds.json", ".local/share/opencode/auth.json",
    "Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome",
)  # fmt: skip
"""Files and folders in a home directory."""
_AGAIN_S = 2.0
"""How long it is remembered where links among them lead."""


def stores_in(homes: Iterable[str]) -> list[str]:
    """Return their names, whether they exist or not."""
    return [os.path.join(home, name) for home in homes for name in SECRETS]


def find_homes(workspace: str) -> list[str]:
    """Return the homes of who we are, and of whom commands run as: ourselves, or, if we are root, the owner of the workspace."""
    uids = [os.getuid()] if hasattr(os, "getuid") else []
    try:
        uids += [os.stat(workspace).st_uid] if uids == [0] else []
    except OSError:
        pass
    return list(dict.fromkeys(filter(None, (os.path.expanduser("~"), *map(home_of, uids)))))


def home_of(uid: int) -> str:
    """Return the home of a user; empty if there is none, or the system keeps no such list."""
    try:
        import pwd

        return pwd.getpwuid(uid).pw_dir
    except (ImportError, KeyError):
        return ""


class SecretStores:
    """Tells which of these a path lies in. Links are resolved anew every few seconds: they may change while a session goes on."""

    def __init__(self, homes: Sequence[str]) -> None:
        real = [os.path.realpath(home) for home in homes]
        self.named = tuple(dict.fromkeys(stores_in((*real, *homes))))
        self._known: dict[str, str] = {}
        self._looked_s = 0.0

    def find(self, path: str) -> str:
        """Return the store that a real path is or lies in; empty: none."""
        known = self._look()
        while True:
            if found := known.get(path.casefold()):
                return found
            above = os.path.dirname(path)
            if above == path:
                return ""
            path = above

    def holds(self, path: str, folders: Iterable[str]) -> bool:
        """Tell whether no tool may read a real path. What the user works in is theirs to show: where one of `folders` lies in a store."""
        store = self.find(path)
        return bool(store) and not any(is_inside(folder, store) for folder in folders)

    def _look(self) -> dict[str, str]:
        """Return them by their names as a file system that does not tell upper case from lower sees them, and by where links lead."""
        now = time.monotonic()
        if not self._known or now - self._looked_s > _AGAIN_S:
            led = [os.path.realpath(path) for path in self.named if os.path.lexists(path)]
            self._known = {path.casefold(): path for path in (*self.named, *led)}
            self._looked_s = now
        return self._known
