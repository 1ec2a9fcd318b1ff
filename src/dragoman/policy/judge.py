"""The approval rules, pure and synchronous: decide from a call's intent and the mode whether it may run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.values.calls import Allow, Deny, Intent
from dragoman.values.messages import ToolSpec
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.policy.command_rules import CommandRuling
    from dragoman.policy.rules import Rule

Mode = Literal["plan", "default", "auto-edit", "auto"]
"""plan: read only. default: ask for writes and commands. auto-edit: run edits inside the workspace, ask for the rest. auto: run commands
too, inside a sandbox alone."""

MODES: tuple[Mode, ...] = ("plan", "default", "auto-edit", "auto")
"""Each lets more run than those before it."""


def narrower(one: Mode, other: Mode) -> Mode:
    return min(one, other, key=MODES.index)


class MustAsk(msgspec.Struct, frozen=True):
    """The user decides; `view` is what they are shown."""

    view: Intent


class Law(msgspec.Struct, frozen=True):
    """What decides beside the mode and what was granted."""

    rules: tuple[Rule, ...] = ()
    folders: tuple[str, ...] = ()
    """Where commands that only read may read: the workspace first. Empty: every command asks."""
    secret: tuple[str, ...] = ()
    """Our own files and folders, which no command reads unasked."""
    hosts: tuple[str, ...] = ()
    """Which hosts our own tools may reach in the mode auto."""
    run_sandboxed: bool = False
    """Whether sandboxed commands run unasked in the other modes too."""
    writable: tuple[str, ...] = ()
    """Further folders that commands in the sandbox may write."""


NO_LAW = Law()
WEB_SEARCH = "google_web_search"
GATE = "network"
"""The name under which the gate of the sandbox is judged: as a tool, with the host as its scope."""


def judge(spec: ToolSpec, intent: Intent, mode: Mode, granted: frozenset[str] = frozenset(), law: Law = NO_LAW) -> Allow | MustAsk | Deny:
    """`granted` holds the keys (see `grant_key`) of what the user has allowed from now on. What is guarded asks nevertheless."""
    if intent.outside:
        return _judge_outside(spec, intent, mode, granted, law)
    ruled = judge_by_rules(spec, intent, granted, law)
    if ruled is not None and ruled.decision == "deny":
        return Deny(f"{spec.name} was refused: {ruled.reason}")
    asks_by_rule = ruled is not None and ruled.decision == "ask" and ruled.is_by_rule
    if spec.read_only and not asks_by_rule and not _reaches_out(spec, intent, mode):
        return Allow()
    if mode == "plan" and not spec.read_only:
        return Allow() if _only_reads(spec, intent, law) else Deny(f"plan mode only reads: {spec.name} was not run")
    if intent.guarded:
        return MustAsk(intent)
    if intent.writes and _writes_guarded(intent):
        return MustAsk(msgspec.structs.replace(intent, guarded="trusted"))
    if asks_by_rule and ruled is not None:
        return MustAsk(_described(intent, ruled))
    if ruled is not None and ruled.decision == "allow":
        return Allow()
    if _runs_by_mode(spec, intent, mode, law) or grant_key(spec, intent) in granted:
        return Allow()
    if _reaches_out(spec, intent, mode) or spec.name == GATE:
        is_search = spec.name == WEB_SEARCH and not intent.scope
        why = say("policy.search_elsewhere") if is_search else say("policy.host_unknown", host=intent.scope or spec.name)
        return MustAsk(msgspec.structs.replace(intent, why=why))
    return MustAsk(_described(intent, ruled) if ruled is not None else intent)


def _only_reads(spec: ToolSpec, intent: Intent, law: Law) -> bool:
    """Whether the words of a command say that it only reads, and no rule says otherwise. What rules allow does not count."""
    if not intent.command or intent.problem:
        return False
    law = msgspec.structs.replace(law, rules=tuple(rule for rule in law.rules if rule.decision != "allow"))
    ruled = judge_by_rules(spec, intent, frozenset(), law)
    return ruled is not None and ruled.decision == "allow" and not ruled.is_by_rule


def _judge_outside(spec: ToolSpec, intent: Intent, mode: Mode, granted: frozenset[str], law: Law) -> Allow | MustAsk | Deny:
    """A command that is to run outside the sandbox: asked about in every mode, unless a rule for that covers it."""
    from dragoman.policy.outside import question_about, tightening_rules  # only where a command is to run there

    ruled = judge_by_rules(spec, intent, frozenset(), msgspec.structs.replace(law, rules=tightening_rules(law.rules)))
    if ruled is not None and ruled.decision == "deny":
        return Deny(f"{spec.name} was refused: {ruled.reason}")
    if mode == "plan":
        return Deny(f"plan mode only reads: {spec.name} was not run")
    view = question_about(msgspec.structs.replace(intent, guarded="outside", sandboxed=False), granted, law, ruled)
    return MustAsk(view) if view is not None else Allow()


def asks_by_rule(spec: ToolSpec, intent: Intent, law: Law) -> bool:
    """Whether one of the user's rules wants it asked about."""
    ruled = judge_by_rules(spec, intent, frozenset(), law)
    return ruled is not None and ruled.decision == "ask" and ruled.is_by_rule


def _runs_by_mode(spec: ToolSpec, intent: Intent, mode: Mode, law: Law) -> bool:
    if spec.kind == "edit" and intent.writes:
        return mode in ("auto-edit", "auto")
    if spec.kind == "execute" and intent.sandboxed:
        return mode == "auto" or law.run_sandboxed
    if (_reaches_out(spec, intent, mode) or spec.name == GATE) and intent.scope:
        from dragoman.policy.host_rules import fits_host

        return any(fits_host(host, intent.scope) for host in law.hosts)
    return False


def _reaches_out(spec: ToolSpec, intent: Intent, mode: Mode) -> bool:
    """Whether a tool asks the network from our own process, outside the sandbox, while nobody is watching: somebody who is not sent the
    conversation anyway."""
    return mode == "auto" and (spec.kind == "fetch" or (spec.name == WEB_SEARCH and not intent.is_by_own_service))


def judge_by_rules(spec: ToolSpec, intent: Intent, granted: frozenset[str], law: Law) -> CommandRuling | None:
    """What rules and the grammar of commands say; None if they say nothing. Loaded with the first command, or where there are rules."""
    if intent.command and law.folders:
        from dragoman.policy.command_rules import judge_command
        from dragoman.policy.commands import ReadableFolders
        from dragoman.policy.offers import prefix_rules

        denied: tuple[str, ...] = ()
        if any(rule.decision == "deny" and rule.tool == "read_file" for rule in law.rules):
            from dragoman.policy.denied_reads import denied_patterns

            denied = denied_patterns(law.rules)
        begun = prefix_rules(key.removeprefix(PREFIX_KEY) for key in granted if key.startswith(PREFIX_KEY))
        directory = intent.directory or law.folders[0]
        return judge_command(intent.command, directory, (*law.rules, *begun), ReadableFolders(law.folders, law.secret, denied))
    if not law.rules:
        return None
    from dragoman.policy.tool_rules import judge_call

    return judge_call(spec, intent, law.rules, law.folders[0] if law.folders else "")


def _described(intent: Intent, ruled: CommandRuling) -> Intent:
    """With why it is asked, and what may be allowed from now on."""
    says_so = intent.writing == "wanted" and not ruled.is_by_rule
    intent = msgspec.structs.replace(intent, why=say("policy.said_to_write") if says_so else ruled.reason)
    if not intent.command:
        return intent
    from dragoman.policy.offers import is_grave, offered_prefix

    if is_grave(intent.command):
        return msgspec.structs.replace(intent, guarded="grave")
    return msgspec.structs.replace(intent, prefix=offered_prefix(ruled.open) if ruled.is_clear and not ruled.is_by_rule else "")


def _writes_guarded(intent: Intent) -> bool:
    from dragoman.policy.guarded_files import is_guarded  # only where something is to be written

    return any(map(is_guarded, intent.writes))


PREFIX_KEY = "run_shell* "
"""What a grant begins with that covers all commands with a beginning."""


def grant_key(spec: ToolSpec, intent: Intent) -> str:
    """What `always` covers: all edits, this exact command, this tool, or this tool with this host."""
    if intent.outside:
        return f"outside {intent.command}"  # never looked up: each is asked about
    if spec.kind == "edit":
        return "edit"
    if intent.scope:
        return f"{spec.name} {intent.scope}"
    if spec.kind == "execute":
        # What is shown may be the same for two commands, or for two folders. No command holds a NUL.
        is_as_shown = not intent.command or intent.preview == intent.command
        return f"{spec.name} {intent.preview}" if is_as_shown else f"{spec.name} {intent.command}\0{intent.directory}"
    return spec.name if spec.name != "edit" else "edit (a tool)"  # somebody's tool of that name must not stand for all edits
