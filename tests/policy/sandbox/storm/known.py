"""Sequences that once did harm, or left something that git runs and nobody was told of."""

from __future__ import annotations

from policy.sandbox.storm.layout import World
from policy.sandbox.storm.sequences import Sequence, Step, shell
from policy.sandbox.storm.session_commands import CANARY, PLANTS, make_asking, make_outside_call, make_tries, run_server

_HOOK = "printf '#!/bin/sh\\n" + CANARY + "\\n' > {path}; chmod +x {path}"
_RUNS_SOMETHING = "printf '[core]\\n\\tfsmonitor = " + CANARY + "\\n' >> {path}"


def _hook(path: str) -> Step:
    return shell(_HOOK.replace("{path}", path))


def _setting(path: str) -> Step:
    return shell(_RUNS_SOMETHING.replace("{path}", path))


def _in(place: str, *steps: Step, form: str = "plain", traits: tuple[str, ...] = (), way: str = "auto") -> Sequence:
    return Sequence(World(place, form, traits, way), steps)


def _outside(*commands: str) -> list[Step]:
    """Let out after each thing is planted that could be run."""
    calls = [shell(**make_outside_call(command)) for command in commands]
    return [step for plant in PLANTS[:7] for step in (shell(plant, writes=True), *calls)]


_SWAP_PRIVATE = "for d in ./dragoman-* ./tmp/dragoman-* @temporary/dragoman-*; do mv $d/tmp $d/t2; ln -s @home $d/tmp; done"
_SWAP_COVERS = "for d in ./dragoman-* ./tmp/dragoman-*; do mv $d/covers/folder $d/covers/f2; ln -s @home/.ssh $d/covers/folder; done"
_WRITE_TEMPORARY = 'for d in /tmp "$TMPDIR"; do echo x >> $d/.bashrc; done'
_READ_OTHERS = (
    "cat @home/Documents/letter.txt bin/letter.txt .venv/lib/of-another-program /tmp/of-another-program /var/tmp/of-another-program"
)
_READ = {"file_path": "src/notes"}

KNOWN = {
    # what the guard followed
    "a nested repository whose .git is a link out": _in(
        "in home", shell("mv sub s2; mkdir sub; ln -s @home/Documents sub/.git"), traits=("nested",)
    ),
    "a folder moved aside for a link to a repository": _in(
        "in home", shell("mv vendor vendor.old && ln -s @home/src/lib vendor"), traits=("nested",)
    ),
    "a hooks path beneath a link to home": _in("in home", shell("mv a a2; ln -s @home a"), traits=("hooks path",)),
    "husky's folder replaced by a link": _in("in home", shell("mv .husky h2; ln -s @home/lib .husky"), traits=("husky",)),
    "an absent hooks path made by a link": _in("in home", shell("rm -rf a; ln -s @home a"), traits=("absent hooks path",)),
    "copies of what is hidden, kept before a command": _in(
        "is home", shell("touch begun"), shell("cat @home/.local/share/dragoman/sessions/*/blobs/* > all.txt", writes=True)
    ),
    # where our own folders lay
    "our folder in a temporary folder inside": _in("temporary folder inside", shell(_SWAP_PRIVATE), shell(_WRITE_TEMPORARY)),
    "our folder in the workspace that is the temporary folder": _in(
        "is the temporary folder", shell(_SWAP_PRIVATE), shell(_WRITE_TEMPORARY)
    ),
    "the covers of secrets swapped": _in(
        "temporary folder inside", shell(_SWAP_COVERS), shell("cat @home/.aws/id_rsa; cat @home/.ssh/id_rsa")
    ),
    # hard links made before
    "a package linked into a store": _in(
        "in home", shell("echo 'import evil' >> .venv/lib/python3/site-packages/mylib.py"), traits=("hard links",)
    ),
    "every file beneath": _in("in home", shell("find node_modules src -type f -exec truncate -s 0 {} +"), traits=("hard links",)),
    "a linked file by our own tools": _in(
        "in home",
        Step((("read_file", _READ), ("edit", {**_READ, "old_string": "notes", "new_string": "changed"}))),
        Step(other="undo"),
        traits=("hard links",),
    ),
    # hooks and settings that nothing held
    "a repository among very many folders": _in("in home", _hook("d005/.git/hooks/pre-push"), traits=("many folders",)),
    ".git that is a link into the workspace": _in(
        "in home", _hook(".git/hooks/pre-push"), _setting("store/git/config"), form="link inside"
    ),
    "a bare repository": _in("in home", _hook("bare.git/hooks/pre-push"), _setting("bare.git/config"), traits=("bare",)),
    "hooks that are a link into the tree": _in("in home", _hook("scripts/hooks/pre-push"), form="linked hooks"),
    "a hook that is a link into the tree": _in("in home", shell(f"echo '{CANARY}' >> scripts/pre-push"), form="linked hook"),
    "another folder above the hooks that a link leads to": _in(
        "in home", shell("rm -rf scripts; ln -s @home scripts"), form="linked hooks"
    ),
    "another folder above a hook that a link leads to": _in(
        "in home",
        shell("mkdir other; printf '#!/bin/sh\\necho other\\n' > other/pre-push"),
        shell("mv scripts s2; mv other scripts"),
        form="linked hook",
    ),
    "a git folder set apart in the workspace": _in(
        "in home", _hook(".gitdata/hooks/pre-push"), _setting(".gitdata/config"), form="separate inside"
    ),
    "settings of a linked worktree's own": _in("linked worktree", _setting("$(git rev-parse --git-dir)/config.worktree")),
    "steps of a rebase": _in("in home", shell(f"mkdir .git/rebase-merge; echo 'exec {CANARY}' > .git/rebase-merge/git-rebase-todo")),
    # what is no file
    "a pipe in the place of settings": _in(
        "in home",
        shell("git init -q new; rm -f new/.git/config; mkfifo new/.git/config"),
        shell("git status", directory="new", timeout_s=1),
        traits=("nested",),
    ),
    # sessions
    "what was let out, with shims, settings and remotes of the model": _in(
        "in home", *_outside("git push origin main", "docker ps"), traits=("no hooks",)
    ),
    "the same with settings that are kept in the workspace": _in("in home", *_outside("git fetch origin"), traits=("dotfiles", "no hooks")),
    "servers of the host and of another session": _in(
        "in home", *map(shell, make_tries()), Step(other="kill holder"), *map(shell, make_tries()), traits=("neighbour",)
    ),
    "a server in the background, asked by a command that only reads and by a browser": _in(
        "in home",
        shell(run_server(), background=True, writes=True),
        shell(make_asking(8123, 40)),
        Step(other="open 8123"),
        Step(other="kill launcher"),
        shell(make_asking(8123)),
        Step(other="reopen"),
        way="default, yes",
    ),
    "a repository made among very many folders, and changed at once": _in(
        "in home", shell("git init -q src; git -C src config alias.st true"), _setting("src/.git/config"), traits=("many folders",)
    ),
    "servers of others, tried by commands that only read": _in(
        "in home", *map(shell, make_tries()), traits=("neighbour",), way="default, no"
    ),
    "a project that passes for a toolchain": _in(
        "in home", shell(_READ_OTHERS), shell(_READ_OTHERS, writes=True), traits=("passes for a toolchain",), way="default, no"
    ),
    "the same by commands that write": _in("in home", shell(_READ_OTHERS), traits=("passes for a toolchain",)),
    "commands that need to write run again after a yes": _in(
        "in home", *(shell(plant) for plant in PLANTS), shell("mkdir -p made && touch made/a"), way="default, yes", traits=("dotfiles",)
    ),
    "nothing is written without a yes": _in("in home", *(shell(plant) for plant in PLANTS), way="default, no", traits=("dotfiles",)),
}
"""By what happens in them."""
