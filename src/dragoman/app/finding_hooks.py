"""Which hooks there are: those of every program whose files may be read, and whether the user has agreed to a project's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dragoman.app.config_tables import ConfigFile
from dragoman.app.extensions import folders_of
from dragoman.app.setup import Setup
from dragoman.app.text_files import FileProblem, read_text
from dragoman.base.words import say
from dragoman.extensions.hooks.agreement import Agreed, hash_of, read_agreed, to_agree
from dragoman.extensions.hooks.definitions import FoundHooks, Hook, files_in, read_hooks, read_json_hooks
from dragoman.extensions.hooks.matching import is_usable
from dragoman.extensions.sources import Origin

MAX_FILE_BYTES = 1_000_000


class HooksOf(msgspec.Struct, frozen=True):
    """The hooks of a folder, and what is known of them."""

    hooks: tuple[Hook, ...]
    notices: tuple[str, ...]
    agreed: dict[str, Agreed]
    workspace: str

    def state(self, hook: Hook) -> str:
        """`runs`, `unasked` or `refused`."""
        bound = to_agree(hook, self.workspace)
        if bound is None:
            return "runs"
        said = self.agreed.get(hash_of(bound))
        return "unasked" if said is None else "runs" if said.is_yes else "refused"

    @property
    def unasked(self) -> tuple[Hook, ...]:
        """As they are agreed to."""
        return self.bound([hook for hook in self.hooks if self.state(hook) == "unasked"])

    def bound(self, hooks: Iterable[Hook]) -> tuple[Hook, ...]:
        """Those of them that have to be agreed to, as that is done."""
        return tuple(bound for hook in hooks if (bound := to_agree(hook, self.workspace)) is not None)


def find_hooks(setup: Setup) -> HooksOf:
    """Never raises: a wrong file is named in a notice, and the rest holds."""
    found = [*_of_config(setup), *_of_programs(setup)]
    hooks = tuple(hook for each in found for hook in each.hooks)
    notices = [notice for each in found for notice in each.notices]
    odd = [hook for hook in hooks if not is_usable(hook.matcher)]
    notices += [say("hooks.bad_matcher", place=str(hook.origin), matcher=hook.matcher[:60]) for hook in odd]
    workspace = os.path.realpath(setup.workspace)
    return HooksOf(hooks, tuple(dict.fromkeys(notices)), read_agreed(setup.places.hooks_file), workspace)


def _of_programs(setup: Setup) -> list[FoundHooks]:
    found: list[FoundHooks] = []
    for folder in folders_of(setup):
        for path in files_in(folder):
            if not os.path.lexists(path):
                continue
            try:
                text = read_text(path, MAX_FILE_BYTES)
            except FileProblem as problem:
                found.append(FoundHooks((), (say("hooks.bad_file", place=path, reason=problem),)))
                continue
            if '"hooks"' in text:
                found.append(read_json_hooks(text, path, folder))
    return found


def _of_config(setup: Setup) -> list[FoundHooks]:
    found: list[FoundHooks] = []
    for file in reversed(setup.loaded.files):  # the project's first, as everywhere
        if file.state != "read" or "hooks" not in file.text:
            continue
        import tomllib

        table = tomllib.loads(file.text).get("hooks")
        project = os.path.realpath(setup.workspace) if file.kind == "project" else ""
        found.append(read_hooks(table, Origin("dragoman", file.kind, file.path), project, line_of=_lines_in(file)))
    return found


def _lines_in(file: ConfigFile) -> Callable[[str, int], int]:
    """The line of the n-th `[[hooks.Event]]`, or of the one place where the event stands."""

    def line_of(event: str, at: int) -> int:
        pattern = rf"\s*(?:\[\[?\s*)?(?:hooks\s*\.\s*)?[\"']?{re.escape(event)}[\"']?\s*(?:\]\]?|=)"
        lines = [number for number, line in enumerate(file.text.splitlines(), 1) if re.match(pattern, line)]
        return lines[min(at, len(lines) - 1)] if lines else 0

    return line_of


def unasked_notice(hooks: Sequence[Hook]) -> str:
    """What the user is told of a project's hooks that are not run."""
    return say("hooks_unasked", count=len(hooks), files=", ".join(dict.fromkeys(hook.origin.path for hook in hooks)))
