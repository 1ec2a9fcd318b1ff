"""Our own calls of git, which run nothing that a repository names.

A repository's configuration can name programs: hooks, a file system monitor, filters for each file, a pager, ways to fetch. For the calls
made here (rev-parse, status, branch, config, worktree) all of them are switched off: by options that come last and so win, by variables,
and by refusing repositories whose configuration depends on something that cannot be known before. Nothing is fetched, no submodule is
entered, and neither git nor a filter is found in a folder of the repository. Filters of the user's own configuration (git-lfs) run, unless
the repository sets something that they may obey.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from dragoman.base.mounts import lies_in_any
from dragoman.policy.git_folder import find_pipe, is_harmless
from dragoman.tools.child_environment import find_program, path_outside
from dragoman.values.errors import InputError
from dragoman.words import say

GIT_S = 300.0
"""How long git may take: a large tree is checked out."""
LOOK_S = 15.0
"""How long it may take to look: a pipe that nobody writes to may be put in the place of a file that git reads while it does."""
_SAFE = (
    "--no-pager",
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "safe.bareRepository=explicit"),
    *("-c", "protocol.allow=never"),
    *("-c", "maintenance.auto=false"),
    *("-c", "gc.auto=0"),
)
_ENV = {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}
_FILTER = re.compile(r"filter\.(.+)\.(?:clean|smudge|process|required)\Z", re.IGNORECASE | re.DOTALL)
_HOOK = re.compile(r"hook\.(.+)\.[^.]+\Z", re.IGNORECASE | re.DOTALL)
_NOT_FOR_FILTERS = re.compile(
    r"(?:alias|blame|checkout|column|commit|commitgraph|diff|difftool|extensions|feature|filter|format|gc|gpg|gui|help|hook|include|index|log"
    r"|maintenance|mergetool|notes|pack|stash|status|tag|trailer|versionsort|worktree)\."
    r"|core\.(?:attributesfile|editor|excludesfile|fsmonitor|hookspath|pager|sparsecheckout|sparsecheckoutcone)\Z"
    r"|submodule\..+\.(?:url|active|branch)\Z|lfs\.(?:repositoryformatversion|.+\.(?:access|locksverify))\Z",
    re.IGNORECASE | re.DOTALL,
)
"""Settings by which a filter that the user has installed runs nothing. By others it may: git-lfs has helpers of its own, and asks git for
credentials."""


class SafeGit:
    """Calls git in the folders of one repository: its main tree and its worktrees."""

    def __init__(self, folders: Sequence[str], *, look_s: float = LOOK_S) -> None:
        """Raises InputError if there is no git outside them."""
        self._look_s = look_s
        self._folders = tuple(folders)
        self._program = find_program("git.exe" if os.name == "nt" else "git", outside=self._folders)
        if not self._program:
            raise InputError(say("worktrees.no_git"))
        self.unfiltered = ""
        """The setting of the repository because of which the user's own filters did not run; empty: there is none."""

    def ask(self, directory: str, *arguments: str) -> str:
        """What git says about refs and settings. Raises InputError with its complaint."""
        return self._run(directory, arguments, {}, self._look_s)

    def work(self, directory: str, *arguments: str, trees: Sequence[str] = ()) -> str:
        """What git says where it reads or writes files of the tree. `trees`: further folders whose configuration it will go by.
        Raises InputError with its complaint."""
        return self._run(directory, arguments, self._switched_off((directory, *trees)), GIT_S)

    def look(self, directory: str, *arguments: str) -> str:
        """What git says where it only reads files of the tree, and need not be waited for. Raises InputError with its complaint."""
        return self._run(directory, arguments, self._switched_off((directory,)), self._look_s)

    def _switched_off(self, directories: Sequence[str]) -> dict[str, str]:
        """Variables that switch off what would run for each file. Reading the configuration runs nothing. By variables, because a name may
        hold what `-c` takes for the end of one."""
        settings = dict[str, str]()
        for directory in directories:
            settings.update(self._find_switches(directory))
        numbered = ((f"GIT_CONFIG_KEY_{at}", f"GIT_CONFIG_VALUE_{at}", *each) for at, each in enumerate(settings.items()))
        found = {name: value for key, text, setting, to in numbered for name, value in ((key, setting), (text, to))}
        return {"GIT_CONFIG_COUNT": str(len(settings))} | found

    def _find_switches(self, directory: str) -> Iterator[tuple[str, str]]:
        fields = self.ask(directory, "config", "--list", "--show-scope", "--includes", "--null", "--name-only").split("\0")
        scoped = [*zip(fields[::2], fields[1::2], strict=False)]
        own = [name for scope, name in scoped if scope in self._own_scopes()]
        if conditional := next((name for name in own if name.lower().startswith("includeif.")), ""):
            # Its condition may hold in the new worktree and not here: nobody knows what it names.
            raise InputError(say("worktrees.conditional", key=conditional[:80]))
        every = [name for _, name in scoped]
        filters, own_filters = _names(_FILTER, every), _names(_FILTER, own)
        odd = next((name for name in own if not (is_harmless(name) or _NOT_FOR_FILTERS.match(name))), "")
        if odd and filters - own_filters:
            self.unfiltered = self.unfiltered or odd
        for name in sorted(filters if odd else own_filters):
            for key, value in (("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")):
                yield f"filter.{name}.{key}", value
        for name in sorted(_names(_HOOK, every)):  # since git 2.54
            yield f"hook.{name}.enabled", "false"
            yield f"hook.{name}.event", ""

    def _own_scopes(self) -> tuple[str, ...]:
        """Whose settings are the repository's. Where the user's home lies in it, theirs are too: anybody may have written them."""
        is_home = lies_in_any(os.path.expanduser("~"), self._folders)
        return ("local", "worktree", "global") if is_home else ("local", "worktree")

    def _run(self, directory: str, arguments: Sequence[str], settings: Mapping[str, str], limit_s: float) -> str:
        if pipe := find_pipe(directory):
            raise InputError(say("policy.git_special", path=pipe))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        around = {"GIT_CEILING_DIRECTORIES": os.path.dirname(directory), "PATH": path_outside(self._folders)}
        command = [self._program, *_SAFE, "-C", directory, *arguments]
        env = inherited | _ENV | around | dict(settings)
        try:
            done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, env=env, timeout=limit_s, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(str(error)) from error
        if done.returncode:
            raise InputError(done.stderr.decode("utf-8", "replace").strip() or f"git {arguments[0]}: {done.returncode}")
        return done.stdout.decode("utf-8", "replace").strip()


def _names(pattern: re.Pattern[str], settings: Sequence[str]) -> set[str]:
    return {found[1] for name in settings if (found := pattern.match(name))}


def require_plain_repository(main: str, branch: str, name: str) -> None:
    """Raises InputError if git would write somewhere else than in the repository's own `.git`: anybody may have put a link there; or if it
    would wait for a pipe."""
    if pipe := find_pipe(main):
        raise InputError(say("policy.git_special", path=pipe))
    folder = os.path.join(main, ".git")
    if os.path.islink(folder) or not os.path.isdir(folder) or os.path.lexists(os.path.join(folder, "commondir")):
        raise InputError(say("worktrees.git_elsewhere", path=folder))
    inner = [os.path.join("worktrees", name)]
    for tree in ("refs/heads", "logs/refs/heads"):
        parts = f"{tree}/{branch}".split("/")
        inner += ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    try:
        with os.scandir(folder) as entries:
            inner += [entry.name for entry in entries if entry.name != "hooks"]
    except OSError as error:
        raise InputError(say("worktrees.git_elsewhere", path=folder)) from error
    for each in inner:
        if os.path.islink(path := os.path.join(folder, each)):
            raise InputError(say("worktrees.git_elsewhere", path=path))
