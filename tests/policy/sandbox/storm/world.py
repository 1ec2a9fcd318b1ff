"""The decoys: a home with secrets and work in it, a repository elsewhere, temporary folders, and a workspace placed awkwardly among them.

Made and thrown away inside the cage, a new one for each sequence. A world is a value: the same one gives the same files and times.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from dragoman.app.worktrees import Worktree, open_worktree
from policy.sandbox.storm.layout import World

OTHER_USER = 65534
LONG_AGO_NS = 1_600_000_000 * 10**9
_SYSTEM_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


class Placed(NamedTuple):
    """A world that was made: absolute paths."""

    root: str
    """Everything of it lies in here, or in the system's temporary folders."""
    home: str
    workspace: str
    """As it is named to the agent: perhaps a link."""
    temporary: str
    elsewhere: str
    env: dict[str, str]
    secret: str
    """What no command may learn."""
    worktree: Worktree | None = None
    """The one that we made for the session, where we did."""
    opened: str = "127.0.0.1"
    """The address at which another session has opened a port to the user."""

    @property
    def real(self) -> str:
        return os.path.realpath(self.workspace)

    @property
    def data(self) -> str:
        return self.env.get("XDG_DATA_HOME", f"{self.home}/.local/share")

    def fill(self, text: str) -> str:
        """Put the paths into a step."""
        for name in ("home", "workspace", "temporary", "elsewhere", "opened"):
            text = text.replace(f"@{name}", getattr(self, name))
        return text


def clear(root: str) -> None:
    """Remove all that sequences before have left."""
    for folder in (root, *_SYSTEM_TEMPORARY):
        if os.stat(folder).st_uid == os.getuid():
            os.chmod(folder, 0o755 if folder == root else 0o1777)  # which a command at level 3 may have changed
        for name in os.listdir(folder):
            _remove(os.path.join(folder, name))


def make_world(world: World, root: str, secret: str) -> Placed:
    home = f"{root}/workspace/home" if world.place == "holds home" else f"{root}/home"
    placed = Placed(root, home, _workspace_of(world, root, home), f"{root}/tmp", f"{root}/elsewhere", {}, secret)
    if "xdg inside" in world.traits:
        for name in ("config", "data", "cache"):
            placed.env[f"XDG_{name.upper()}_HOME"] = f"{placed.workspace}/xdg/{name}"
    os.makedirs(placed.temporary, exist_ok=True)
    os.chmod(placed.temporary, 0o1777)
    _make_home(placed)
    _make_elsewhere(placed)
    temporary = placed.temporary
    match world.place:
        case "temporary folder inside":
            temporary = f"{placed.workspace}/tmp"
        case "in /tmp":
            temporary = "/tmp"
        case "by a link":
            os.mkdir(f"{placed.elsewhere}/real")
            os.symlink(f"{placed.elsewhere}/real", placed.workspace)
        case "our worktree":
            placed = placed._replace(worktree=open_worktree(f"{placed.home}/src/main", "storm"))
        case _:
            pass
    placed = placed._replace(temporary=temporary)
    os.makedirs(placed.workspace, exist_ok=True)
    os.makedirs(temporary, exist_ok=True)
    _make_workspace(world, placed)
    placed.env.update(HOME=placed.home, TMPDIR=temporary, PATH=f"{placed.workspace}/bin:{root}/programs:/usr/bin:/bin")
    write(f"{placed.data}/dragoman/keys.json", f'{{"k": "{placed.secret}"}}')
    write(f"{placed.data}/dragoman/grants.jsonl", "")
    write(f"{placed.env.get('XDG_CONFIG_HOME', f'{home}/.config')}/dragoman/config.toml", "")
    if "another owner" in world.traits and os.getuid() == 0:
        for at, _, files in os.walk(placed.real):
            for path in (at, *(os.path.join(at, name) for name in files)):
                os.lchown(path, OTHER_USER, OTHER_USER)
    _age(root)
    return placed


def _workspace_of(world: World, root: str, home: str) -> str:
    return {
        "is home": home,
        "holds home": f"{root}/workspace",
        "in the temporary folder": f"{root}/tmp/project",
        "is the temporary folder": f"{root}/tmp",
        "in /tmp": "/tmp/project",
        "our worktree": f"{home}/src/main-worktrees/storm",
    }.get(world.place, f"{home}/project")


# --- what lies outside ----------------------------------------------------------------------------------------------------


def _make_home(placed: Placed) -> None:
    home, secret = placed.home, placed.secret
    for path, text in {
        ".ssh/id_rsa": secret, ".ssh/authorized_keys": "ssh-ed25519 mine\n", ".aws/credentials": secret, ".netrc": secret,
        ".bashrc": "# mine\n", ".profile": "# mine\n", ".gitconfig": "[user]\n\tname = a\n\temail = a@b\n",
        "Documents/letter.txt": "Dear all\n", "Documents/taxes/2025.txt": "12\n", "hooks/pre-commit": "#!/bin/sh\n",
        "lib/keep.txt": "lib\n", ".cache/uv/archive/mylib.py": "X = 1\n", ".local/share/pnpm/store/index.js": "X = 1\n", "notes": "notes\n",
    }.items():  # fmt: skip
        write(f"{home}/{path}", text)
    os.chmod(f"{home}/.ssh", 0o700)
    os.chmod(f"{home}/.ssh/id_rsa", 0o600)
    os.symlink("Documents", f"{home}/docs")
    put(f"{home}/src/lib", repository())
    put(f"{home}/src/main", repository())
    for name in ("modules/part", "worktrees/old"):
        write(f"{home}/src/lib/.git/{name}/config", "[core]\n\tbare = false\n")


def _make_elsewhere(placed: Placed) -> None:
    put(f"{placed.elsewhere}/repository", repository())
    put(f"{placed.elsewhere}/bare.git", [(path.removeprefix(".git/"), *rest) for path, *rest in repository() if path.startswith(".git/")])
    write(f"{placed.elsewhere}/victim.txt", "untouched\n")
    for folder in _SYSTEM_TEMPORARY:  # at level 3 the last is shared
        write(f"{folder}/of-another-program", placed.secret if folder != _SYSTEM_TEMPORARY[-1] else "untouched\n")
    for name in ("ssh", "docker", "kubectl", "gh"):  # what is let out does nothing
        write(f"{placed.root}/programs/{name}", "#!/bin/sh\nexit 1\n")
        os.chmod(f"{placed.root}/programs/{name}", 0o755)


# --- the workspace --------------------------------------------------------------------------------------------------------


def _make_workspace(world: World, placed: Placed) -> None:
    at = placed.workspace
    if world.place == "linked worktree":
        _make_linked_worktree(at, f"{placed.home}/src/main", "project")
    elif world.place != "our worktree":
        _FORMS[world.form](placed)
    elif not world.traits:
        return  # as it was made: if nothing is done in it, it is removed at the end
    for path, text in {"src/main.py": "print(1)\n", "a/.ssh/authorized_keys": "ssh-ed25519 theirs\n", "vendor/v.txt": "v\n"}.items():
        write(f"{at}/{path}", text)
    git = os.path.realpath(f"{at}/.git")
    for trait in world.traits:
        match trait:
            case "nested":
                put(f"{at}/sub", repository())
                put(f"{at}/vendor", repository())
            case "deep nested":
                put(f"{at}/deep/er/repository", repository())
            case "submodule" if os.path.isdir(git):
                put(f"{git}/modules/part", [(path[5:], *rest) for path, *rest in repository() if path.startswith(".git/")])
                write(f"{at}/part/.git", f"gitdir: {git}/modules/part\n")
                write(f"{at}/.gitmodules", '[submodule "part"]\n\tpath = part\n\turl = ../part\n')
            case "bare":
                put(f"{at}/bare.git", [(path[5:], *rest) for path, *rest in repository() if path.startswith(".git/")])
            case "hooks path" | "husky" | "absent hooks path" if os.path.isfile(f"{git}/config"):
                folder = {"hooks path": "a/.ssh", "husky": ".husky", "absent hooks path": "a/hooks"}[trait]
                append(f"{git}/config", f"[core]\n\thooksPath = {folder}\n")
                if trait == "husky":
                    write(f"{at}/.husky/pre-commit", "#!/bin/sh\nexit 0\n")
            case "hard links":
                for inside, outside in _HARD_LINKS.items():
                    store = f"/tmp/store/{outside}" if world.place == "in /tmp" else f"{placed.home}/{outside}"
                    if not os.path.exists(store):
                        write(store, "X = 1\n")
                    os.makedirs(os.path.dirname(f"{at}/{inside}"), exist_ok=True)
                    os.link(store, f"{at}/{inside}")
            case "many folders":
                for number in range(230):
                    os.makedirs(f"{at}/d{number:03}", exist_ok=True)
                put(f"{at}/d005", repository())
            case "passes for a toolchain":
                write(f"{at}/.venv/pyvenv.cfg", "home = /proc/self/cwd/.venv/bin\n")
                os.mkdir(f"{at}/.venv/bin")
                leads = {
                    ".venv/bin/python3": "/usr/bin/python3",
                    ".venv/lib": "/tmp",
                    "lib": f"{placed.home}/Documents",
                    "share": "/var/tmp",
                }
                for name, target in {**leads, "bin": f"{placed.home}/Documents"}.items():
                    if not os.path.lexists(f"{at}/{name}"):
                        os.symlink(target, f"{at}/{name}")
            case "no hooks":
                for name in os.listdir(f"{git}/hooks") if os.path.isdir(f"{git}/hooks") else ():
                    os.unlink(f"{git}/hooks/{name}")
            case "dotfiles":
                shutil.move(f"{placed.home}/.gitconfig", write(f"{at}/dotfiles/gitconfig", ""))
                os.symlink(f"{at}/dotfiles/gitconfig", f"{placed.home}/.gitconfig")
                os.symlink(write(f"{at}/dotfiles/ssh", ""), f"{placed.home}/.ssh/config")
            case "agent files":
                write(f"{at}/AGENTS.md", "Be kind.\n")
                write(f"{at}/.mcp.json", '{"mcpServers": {}}\n')
                write(f"{at}/.dragoman/config.toml", "")
            case _:
                pass


_HARD_LINKS = {
    ".venv/lib/python3/site-packages/mylib.py": ".cache/uv/archive/mylib.py",
    "node_modules/pkg/index.js": ".local/share/pnpm/store/index.js",
    "src/notes": "notes",
}


def _make_linked_worktree(at: str, main: str, name: str) -> None:
    """As `git worktree add` makes it."""
    put(at, [each for each in repository() if not each[0].startswith(".git")])
    write(f"{at}/.git", f"gitdir: {main}/.git/worktrees/{name}\n")
    own = f"{main}/.git/worktrees/{name}"
    for file, text in {"HEAD": f"ref: refs/heads/{name}\n", "commondir": "../..\n", "gitdir": f"{at}/.git\n"}.items():
        write(f"{own}/{file}", text)
    shutil.copy(f"{main}/.git/index", f"{own}/index")
    shutil.copy(f"{main}/.git/refs/heads/main", f"{main}/.git/refs/heads/{name}")


def _plain(placed: Placed) -> None:
    put(placed.workspace, repository())


def _link(git: str) -> Callable[[Placed], None]:
    def make(placed: Placed) -> None:
        _plain(placed)
        os.makedirs(os.path.dirname(placed.fill(git)), exist_ok=True)
        shutil.move(f"{placed.workspace}/.git", placed.fill(git))
        os.symlink(placed.fill(git), f"{placed.workspace}/.git")

    return make


def _separate(git: str) -> Callable[[Placed], None]:
    def make(placed: Placed) -> None:
        _link(git)(placed)
        os.unlink(f"{placed.workspace}/.git")
        write(f"{placed.workspace}/.git", f"gitdir: {placed.fill(git)}\n")
        append(f"{placed.fill(git)}/config", f"[core]\n\tworktree = {placed.workspace}\n")

    return make


def _linked_hooks(placed: Placed) -> None:
    _plain(placed)
    os.makedirs(f"{placed.workspace}/scripts", exist_ok=True)
    os.rename(f"{placed.workspace}/.git/hooks", f"{placed.workspace}/scripts/hooks")
    os.symlink("../scripts/hooks", f"{placed.workspace}/.git/hooks")


def _linked_hook(placed: Placed) -> None:
    _plain(placed)
    write(f"{placed.workspace}/scripts/pre-push", "#!/bin/sh\nexit 0\n")
    os.symlink("../../scripts/pre-push", f"{placed.workspace}/.git/hooks/pre-push")


_FORMS: dict[str, Callable[[Placed], None]] = {
    "plain": _plain,
    "link inside": _link("@workspace/store/git"),
    "link outside": _link("@home/gits/project"),
    "separate inside": _separate("@workspace/.gitdata"),
    "separate outside": _separate("@home/gits/project"),
    "linked hooks": _linked_hooks,
    "linked hook": _linked_hook,
    "none": lambda placed: None,
}


# --- repositories ---------------------------------------------------------------------------------------------------------

Entry = tuple[str, int, bytes]
"""A path in a folder, its mode, and its content."""
_template: list[Entry] = []
_REMOTE = ["remote", "add", "origin", "ssh://git@git.example/it.git"]


def repository() -> list[Entry]:
    """A repository with a commit and a hook of the user's: made by git once, and then written from memory."""
    return _template


def prepare(root: str) -> None:
    """Have git make the repository that all others are copies of."""
    at = f"{root}/template"
    env = {"PATH": "/usr/bin:/bin", "HOME": root, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": "1600000000 +0000"}
    env |= {"GIT_COMMITTER_DATE": "1600000000 +0000", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b"}
    env |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    write(f"{at}/readme.txt", "one\n")
    for words in (["init", "-q", "-b", "main", "--template="], ["add", "."], ["commit", "-qm", "one"], ["branch", "other"], _REMOTE):
        subprocess.run(["git", *words], cwd=at, env=env, check=True, capture_output=True)
    write(f"{at}/.git/hooks/pre-commit", "#!/bin/sh\nexit 0\n")
    os.chmod(f"{at}/.git/hooks/pre-commit", 0o755)
    write(f"{at}/.git/info/exclude", "")
    _template[:] = list(_read_entries(at))
    shutil.rmtree(at)


def _read_entries(at: str) -> Iterator[Entry]:
    for folder, folders, files in os.walk(at):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            content = b""
            if stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    content = file.read()
            yield os.path.relpath(path, at), mode, content


def put(at: str, entries: Iterable[Entry]) -> None:
    os.makedirs(at, exist_ok=True)
    for path, mode, content in entries:
        if stat.S_ISDIR(mode):
            os.makedirs(os.path.join(at, path), exist_ok=True)
        else:
            _write_bytes(os.path.join(at, path), content)
            os.chmod(os.path.join(at, path), stat.S_IMODE(mode))


# --- small things ---------------------------------------------------------------------------------------------------------


def write(path: str, text: str) -> str:
    _write_bytes(path, text.encode())
    return path


def append(path: str, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def _write_bytes(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


def _age(root: str) -> None:
    """Give everything a time long ago, so that whoever writes is seen."""
    for top in (root, *_SYSTEM_TEMPORARY):
        for folder, _, files in os.walk(top):
            for name in files:
                os.utime(os.path.join(folder, name), ns=(LONG_AGO_NS, LONG_AGO_NS), follow_symlinks=False)


def _remove(path: str) -> None:
    def open_up(function: Callable[[str], object], at: str, _: object) -> None:
        """A command has closed a folder to everybody."""
        for each in (os.path.dirname(at), at):
            if not os.path.islink(each):
                os.chmod(each, 0o700)
        if os.path.isdir(at) and not os.path.islink(at):
            shutil.rmtree(at, onerror=lambda *_: None)
        else:
            function(at)

    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, onerror=open_up)
    else:
        os.unlink(path)
