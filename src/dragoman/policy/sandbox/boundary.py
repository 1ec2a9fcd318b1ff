"""Draws the boundary of a workspace: what commands may write, what is fixed inside it, and which files they must not see."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Sequence

from dragoman.base.beneath import is_inside
from dragoman.policy.sandbox.believed import believed_in, start_files
from dragoman.policy.sandbox.depths import Depths
from dragoman.policy.sandbox.launcher.order import Boundary
from dragoman.policy.sandbox.repositories import Repository, find_repositories

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
    ".bitcoin", ".ethereum", ".electrum", ".local/share/mkcert", ".config/Signal", ".config/Slack", ".config/discord", ".config/vivaldi",
    ".config/microsoft-edge", ".config/opera", ".var/app", "snap/firefox", ".qwen/oauth_creds.json", ".local/share/opencode/auth.json",
    "Library/Keychains", "Library/Cookies", "Library/Application Support/Google/Chrome",
)  # fmt: skip
"""Stores of secrets, in the home directory."""
_PREFIX = "dragoman-private-"
_SYSTEM_TEMPORARY = {"/tmp": "tmp", "/var/tmp": "var-tmp"}
_NEVER_READABLE = ("/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/sys/kernel/debug", "/sys/kernel/tracing")
"""With Landlock alone: other programs' temporary files and sockets, and devices."""


class Ground:
    """What a boundary is drawn from. It lasts as long as the sandbox; what exists is looked up for each command."""

    def __init__(
        self,
        writable: Sequence[str],
        *,
        homes: Sequence[str],
        private: str,
        own: Sequence[str] = (),
        secret: Sequence[str] = (),
        readable: Sequence[str] = (),
        user: int | None = None,
        is_denied: Callable[[str], bool] | None = None,
    ) -> None:
        """`private`: a folder of the session with `tmp`, `var-tmp` and `covers` in it. `own`: our configuration, approvals and logs.
        `user`: who commands run as, where that is not us. `is_denied`: which files in the workspace must not be read."""
        self.writable = _outermost(os.path.realpath(path) for path in writable)
        self.believed = [path for root in self.writable for path in believed_in(root)]
        """What is read as configuration in these folders, whether it exists or not."""
        self.started = [*start_files(homes, self.writable), *_links_to(own, self.writable)]
        """What runs by itself in a home directory among these folders: commands cannot be kept from it, so it is put back."""
        self._stores = [os.path.join(os.path.realpath(home), name) for home in homes if home for name in SECRETS]
        self.private = private
        self._own = own
        self._secret = secret
        self._readable = readable
        self._user = user
        self._depths = Depths(self.writable, is_denied)

    def repositories(self) -> list[Repository]:
        return find_repositories(self.writable, self._depths.repositories)

    def draw(self, repositories: Sequence[Repository] | None = None) -> Boundary:
        """For namespaces: ours, or those of bubblewrap. `repositories`: those of now, where they are known."""
        writable = tuple(path for path in self.writable if os.path.lexists(path))
        repositories = self.repositories() if repositories is None else repositories
        folders = [each.folder for each in repositories if each.folder]
        fixed = [path for each in repositories for path in each.fixed]
        fixed += [path for path in self.believed if os.access(path, os.F_OK) and not os.path.islink(path)]
        fixed += [path for path in map(os.path.realpath, self._own) if _is_in_any(path, writable) and os.path.lexists(path)]
        return Boundary(
            writable=_outermost((*writable, *(each.shared for each in repositories if each.shared))),
            pinned=tuple(sorted({*folders, *self._around_own(writable)})),  # a folder before what lies in it
            read_only=tuple(dict.fromkeys(fixed)),
            hidden=tuple(path for path in self._hidden() if not any(is_inside(root, path) for root in writable)),
            readable=tuple(path for path in map(os.path.realpath, self._readable) if _is_covered(path) and os.path.lexists(path)),
            private=tuple((place, os.path.join(self.private, name)) for place, name in _SYSTEM_TEMPORARY.items() if _is_folder(place)),
            covers=os.path.join(self.private, "covers"),
        )

    def draw_for_landlock(self, repositories: Sequence[Repository] | None = None) -> Boundary:
        """For Landlock alone, which can allow and not except: everything readable is listed, around what is secret."""
        temporary = os.path.join(self.private, "tmp")
        unreadable = [*self._hidden(), *_NEVER_READABLE]
        shared = [each.shared for each in (self.repositories() if repositories is None else repositories) if each.shared]
        return Boundary(
            writable=(*self.writable, *shared, temporary),
            readable=(*_readable_around("/", list(map(os.path.realpath, unreadable))), *self._readable),
        )

    def find_open(self, paths: Iterable[str]) -> list[str]:
        """Those that lie where commands write."""
        return [path for path in map(os.path.realpath, paths) if _is_in_any(path, self.writable)]

    def _around_own(self, writable: Sequence[str]) -> list[str]:
        """The folders between the workspace and what is ours in it: with one of them ours could be moved away, and another put there."""
        found: list[str] = []
        for path in map(os.path.realpath, self._own):
            while _is_in_any(path := os.path.dirname(path), writable) and path not in writable:
                found.append(path)
        return [path for path in dict.fromkeys(found) if os.path.isdir(path)]

    def _hidden(self) -> list[str]:
        # Not os.path.exists: few of these are there, and for each that is not it would make an exception, which takes longest.
        named = (path for path in (*self._stores, *self._secret, *self._depths.denied) if os.access(path, os.F_OK))
        found = dict.fromkeys(map(os.path.realpath, named))
        return [path for path in _outermost(found) if os.path.lexists(path) and (self._user is None or _can_reach(path, self._user))]


def _links_to(paths: Iterable[str], roots: Sequence[str]) -> list[str]:
    """Links in the workspace by which a path leads where it leads: nothing can cover one."""
    found: list[str] = []
    for path in map(os.path.abspath, paths):
        while path != os.path.dirname(path):
            if os.path.islink(path) and _is_in_any(os.path.join(os.path.realpath(os.path.dirname(path)), ""), roots):
                found.append(path)
            path = os.path.dirname(path)
    return list(dict.fromkeys(found))


def make_private_folder(parent: str, user: tuple[int, int]) -> str:
    """The session's own temporary files, with what covers secrets. Raises OSError."""
    if os.getuid() == 0 and user[0] != 0:
        parent = parent or "/tmp"  # ours may be closed to that user
    parent = parent or tempfile.gettempdir()
    _remove_left_over(parent)
    folder = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=parent)
    covers = os.path.join(folder, "covers")
    for path in (os.path.join(folder, "tmp"), os.path.join(folder, "var-tmp"), covers, os.path.join(covers, "folder")):
        os.mkdir(path, 0o700)
    os.close(os.open(os.path.join(covers, "file"), os.O_CREAT | os.O_WRONLY, 0o400))
    if os.getuid() == 0 and user[0] != 0:
        for at, folders, files in os.walk(folder):
            for path in (at, *(os.path.join(at, name) for name in (*folders, *files))):
                os.chown(path, *user)
    return folder


def _remove_left_over(parent: str) -> None:
    """Folders of programs that were killed."""
    with os.scandir(parent) as entries:
        found = [entry for entry in entries if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False)]
    for entry in found:
        pid = entry.name.removeprefix(_PREFIX).partition("-")[0]
        if pid.isdigit() and not _is_alive(int(pid)) and entry.stat(follow_symlinks=False).st_uid == os.getuid():
            shutil.rmtree(entry.path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # somebody else's
        pass
    return True


def _can_reach(path: str, uid: int) -> bool:
    """Whether a user may go through all folders above a path. What they cannot reach needs no cover, and they cannot put one there."""
    try:
        entry = pwd.getpwuid(uid)
        groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    except KeyError:
        groups = None  # not known: then any group may be theirs
    while (path := os.path.dirname(path)) != "/":
        status = os.stat(path)
        if status.st_uid == uid:
            may = stat.S_IXUSR
        elif groups is None:
            may = stat.S_IXGRP | stat.S_IXOTH
        else:
            may = stat.S_IXGRP if status.st_gid in groups else stat.S_IXOTH
        if not status.st_mode & may:
            return False
    return True


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Without those that lie in another."""
    kept: list[str] = []
    for path in sorted(set(paths), key=len):
        if not _is_in_any(path, kept):
            kept.append(path)
    return tuple(kept)


def _is_in_any(path: str, folders: Iterable[str]) -> bool:
    return any(is_inside(path, folder) for folder in folders)


def _is_covered(path: str) -> bool:
    return _is_in_any(path, (*_SYSTEM_TEMPORARY, "/run", "/dev"))


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _readable_around(folder: str, secret: list[str]) -> list[str]:
    """A folder where nothing beneath it is secret; else those of its entries that are not. Links are left out: they may lead to secrets."""
    beneath = [path for path in secret if is_inside(path, folder)]
    if not beneath:
        return [folder]
    if folder in beneath:
        return []
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    found += _readable_around(entry.path, beneath)
    except OSError:
        pass
    return found
