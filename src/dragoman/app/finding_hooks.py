"""Finds the hooks of every program whose files may be read, and whether the user has agreed to a project's."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from dragoman.app.extensions import folders_of
from dragoman.app.setup import Setup, may_have_plugins
from dragoman.base.text_files import FileProblem, read_text
from dragoman.extensions.hooks.agreement import Agreed, hash_of, read_agreed, to_agree
from dragoman.extensions.hooks.definitions import FoundHooks, Hook, LineOf, files_in, read_hooks, read_json_hooks, read_plugin_hooks
from dragoman.extensions.hooks.matching import is_usable
from dragoman.extensions.sources import ProgramFolder
from dragoman.values.origin import Origin
from dragoman.words import say

MAX_FILE_BYTES = 1_000_000
T = TypeVar("T")


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
        """The project's hooks that the user has not been asked about yet, in the form agreements are saved in."""
        return self.bound([hook for hook in self.hooks if self.state(hook) == "unasked"])

    def bound(self, hooks: Iterable[Hook]) -> tuple[Hook, ...]:
        """The hooks that need the user's agreement, in the form agreements are saved in."""
        return tuple(bound for hook in hooks if (bound := to_agree(hook, self.workspace)) is not None)


def find_hooks(setup: Setup) -> HooksOf:
    """Never raises: a wrong file is named in a notice, and the rest holds."""
    found = [*_of_config(setup), *_of_programs(setup), *_of_plugins(setup)]
    hooks = tuple(hook for each in found for hook in each.hooks)
    notices = [notice for each in found for notice in each.notices]
    odd = [hook for hook in hooks if not is_usable(hook.matcher)]
    notices += [say("hooks.bad_matcher", place=str(hook.origin), matcher=hook.matcher[:60]) for hook in odd]
    notices += _wrong_conditions([hook for hook in hooks if hook.condition])
    workspace = os.path.realpath(setup.workspace)
    return HooksOf(hooks, tuple(dict.fromkeys(notices)), read_agreed(setup.places.hooks_file), workspace)


def _wrong_conditions(hooks: Sequence[Hook]) -> list[str]:
    if not hooks:
        return []
    from dragoman.app.hook_conditions import is_rule

    odd = [hook for hook in hooks if not is_rule(hook.condition)]
    return [say("hooks.bad_condition", place=str(hook.origin), condition=hook.condition[:60]) for hook in odd]


def _of_programs(setup: Setup) -> list[FoundHooks]:
    folders = folders_of(setup)
    off = {folder.path for folder in folders if folder.program == "codex" and _is_off_by_codex(folder)}
    used = [folder for folder in folders if folder.path not in off]
    named = [(folder, path) for folder in used for path in files_in(folder) if os.path.lexists(path) and not folder.leads_out(path)]
    disabled = frozenset(
        key for folder in folders if folder.program == "codex" and not folder.project for key in _disabled_by_codex(folder)
    )
    of_codex, of_others = partial(_read_codex, disabled=disabled), partial(read_json_hooks, disabled=disabled)
    return [_read(path, of_codex if path.endswith(".toml") else of_others, folder) for folder, path in named]


def _config_of_codex(folder: ProgramFolder) -> Mapping[str, Any]:
    path = os.path.join(folder.path, "config.toml")
    try:
        text = read_text(path, MAX_FILE_BYTES) if os.path.lexists(path) else ""
        if "hooks" not in text:
            return {}
        import tomllib

        return tomllib.loads(text)
    except (FileProblem, ValueError, RecursionError):  # said by whoever reads its hooks
        return {}


def _is_off_by_codex(folder: ProgramFolder) -> bool:
    """Whether its configuration switches hooks off, those of hooks.json too."""
    features = _config_of_codex(folder).get("features")
    return isinstance(features, dict) and False in (features.get("hooks"), features.get("codex_hooks"))


def _disabled_by_codex(folder: ProgramFolder) -> Iterator[str]:
    """The hooks that its user has switched off one by one, by their places."""
    table = _config_of_codex(folder).get("hooks")
    state = table.get("state") if isinstance(table, dict) else None
    for key, row in state.items() if isinstance(state, dict) else ():
        if isinstance(row, dict) and row.get("enabled") is False:
            yield key.strip()


def _read_codex(text: str, path: str, folder: ProgramFolder, disabled: frozenset[str]) -> FoundHooks:
    """Codex takes hooks in its configuration too."""
    import tomllib

    try:
        table = tomllib.loads(text).get("hooks")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        from dragoman.base.toml_lines import place_of_fault

        return FoundHooks((), (say("hooks.bad_file", place=place_of_fault(path, error), reason=error),))
    if isinstance(table, dict):
        table = {name: groups for name, groups in table.items() if name != "state"}  # what its user has trusted
    return read_hooks(table, Origin("codex", folder.tier, path), folder.project, disabled=disabled, line_of=_lines_in(text))


def _of_plugins(setup: Setup) -> list[FoundHooks]:
    if not may_have_plugins(setup):
        return []
    from dragoman.app.plugins import plugins_of

    named = [(plugin, path) for plugin in plugins_of(setup).found for path in plugin.hooks]
    return [_read(path, read_plugin_hooks, plugin) for plugin, path in named]


def _read(path: str, read: Callable[[str, str, T], FoundHooks], whose: T) -> FoundHooks:
    try:
        text = read_text(path, MAX_FILE_BYTES)
    except FileProblem as problem:
        return FoundHooks((), (say("hooks.bad_file", place=path, reason=problem),))
    has_hooks = ("hooks" if path.endswith(".toml") else '"hooks"') in text or (text.strip() != "{}" and path.endswith("hooks.json"))
    return read(text, path, whose) if has_hooks else FoundHooks()


def _of_config(setup: Setup) -> list[FoundHooks]:
    found: list[FoundHooks] = []
    for file in reversed(setup.loaded.files):  # the project's first, as everywhere
        if file.state != "read" or "hooks" not in file.text:
            continue
        import tomllib

        table = tomllib.loads(file.text).get("hooks")
        project = os.path.realpath(setup.workspace) if file.kind == "project" else ""
        found.append(read_hooks(table, Origin("dragoman", file.kind, file.path), project, line_of=_lines_in(file.text)))
    return found


def _lines_in(text: str) -> LineOf:
    """The line of the n-th `[[hooks.Event]]`, or of the one place where the event stands."""

    def line_of(event: str, at: int, number: int | None) -> int:
        pattern = rf"\s*(?:\[\[?\s*)?(?:hooks\s*\.\s*)?[\"']?{re.escape(event)}[\"']?\s*(?:\]\]?|=)"
        lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(pattern, line)]
        return lines[min(at, len(lines) - 1)] if lines else 0

    return line_of


def unasked_notice(hooks: Sequence[Hook]) -> str:
    """The notices about a project's hooks that are not run."""
    return say("hooks_unasked", count=len(hooks), files=", ".join(dict.fromkeys(hook.origin.path for hook in hooks)))
