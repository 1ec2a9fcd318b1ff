"""Which project hooks the user has agreed to. An agreement covers one command and the project files it runs or names, by their hash.

A hook runs outside the sandbox and unasked. So a yes is bound to a hash: of its definition, and of the content of every file of the
project that its command runs or names. Where one of them changes, by a pull or by the model, it is asked about again.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Sequence
from hashlib import sha256

import msgspec

from dragoman.base.clock import now_ms
from dragoman.base.lock import hold
from dragoman.base.named_files import code_of, hash_code
from dragoman.base.private import make_directory
from dragoman.base.runs.search import ProjectCode
from dragoman.base.saved_lines import read_lines, replace_lines
from dragoman.extensions.hooks.definitions import Hook, definition_of
from dragoman.extensions.sources import ROOT_VARIABLES, fill_root

_QUOTED = r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\."""
_OUTPUT = re.compile(rf"""({_QUOTED})|(?:[12&]?>>?\|?)[ \t]*(?!\(|&)(?:{_QUOTED}|[^\s;&|<>()'"\\`])+""", re.DOTALL)
_PLACES = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "DRAGOMAN_PROJECT_DIR", "PWD")


class Agreed(msgspec.Struct, frozen=True):
    """One line of the file."""

    hash: str
    project: str
    command: str
    """For whoever reads the file."""
    saved_ms: int = 0
    is_yes: bool = True
    """A no is remembered too: it is not asked about again."""


def hash_of(hook: Hook) -> str:
    """A hash of the command and of the project files it runs or names, as they are now."""
    made = sha256(definition_of(hook).encode("utf-8", "surrogatepass"))
    made.update(hash_code(code_run_by(hook), hook.project).encode())
    return made.hexdigest()


def code_run_by(hook: Hook) -> ProjectCode:
    """What its command runs of the project, and the files it names, but for those it only writes to: a log grows with every run."""
    words = [hook.command, *hook.args] if hook.args is not None else [_without_outputs(hook.command)]
    expanded = [_expanded(fill_root(word, hook.root), hook.project, hook.root) for word in words]
    return code_of(expanded, hook.project, hook.project, is_line=hook.args is None, is_users=hook.origin.tier == "user")


def to_agree(hook: Hook, workspace: str) -> Hook | None:
    """What has to be agreed to before it runs: a project's hook; and one of the user's own that runs a file of the workspace, which
    others may have written, and the model may write. None: it runs as it is."""
    if hook.project:
        return hook
    bound = msgspec.structs.replace(hook, project=workspace)
    return bound if code_run_by(bound).files else None


def _without_outputs(command: str) -> str:
    """Without what is written to, `> file` and `>> file`: outside quotes only, so that nothing that is run is taken for one."""
    if ">" not in command:
        return command
    try:
        shlex.split(command)
    except ValueError:  # an open quote: the shell says so too
        return command
    return _OUTPUT.sub(lambda found: found[0] if found[1] or "$(" in found[0] or "`" in found[0] else " ", command)


def _expanded(word: str, project: str, root: str) -> str:
    for name in _PLACES:
        word = word.replace(f"${{{name}}}", project).replace(f"${name}", project)
    for name in ROOT_VARIABLES if root else ():
        word = word.replace(f"${name}", root)
    return word.replace("\0", "")


def read_agreed(path: str) -> dict[str, Agreed]:
    """The saved agreements by hash. Damaged lines and unreadable files count as no agreement."""
    try:
        return {each.hash: each for each in read_lines(path, Agreed)}
    except OSError:
        return {}


def agree(path: str, hooks: Sequence[Hook], *, is_yes: bool = True) -> None:
    """Remember what the user said about each of these, as they are now. Raises OSError."""
    _change(path, {made: Agreed(made, hook.project, hook.line, now_ms(), is_yes) for hook in hooks for made in (hash_of(hook),)}, ())


def take_back(path: str, hooks: Sequence[Hook]) -> None:
    """Raises OSError."""
    _change(path, {}, {hash_of(hook) for hook in hooks})


def _change(path: str, added: dict[str, Agreed], removed: Collection[str]) -> None:
    make_directory(os.path.dirname(path))
    with hold(path):
        kept = {key: each for key, each in {**read_agreed(path), **added}.items() if key not in removed}
        replace_lines(path, kept.values())
