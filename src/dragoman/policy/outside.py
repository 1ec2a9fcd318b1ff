"""Commands that are to run outside the sandbox, with all rights of the user. Each is asked about, in every mode.

Two things spare the question: a rule that was written for it (`outside git push`), and a beginning that the user allowed for the session
(outside_beginnings.py). Neither mode nor other rules, grants or hooks do. What runs unasked gets an environment in which no program is
found in a folder that commands may write.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from dragoman.policy.command_rules import CommandRuling, fits_step
from dragoman.policy.commands import ReadableFolders, doubt_of_environment, doubt_of_program, steps_of
from dragoman.policy.grants import OUTSIDE_KEY
from dragoman.policy.outside_beginnings import (
    LEADS_TO,
    addresses_of,
    doubt_of_beginning,
    find_beginning,
    plain_environment,
    plain_words,
)
from dragoman.policy.rules import COMMANDS, OUTSIDE, Rule, Ruling
from dragoman.policy.shell_grammar import read_commands
from dragoman.policy.shell_words import Unclear
from dragoman.policy.work import TooMuchWork
from dragoman.values.calls import Intent
from dragoman.values.commands import OutsideRun
from dragoman.words import say

_COUNTING = ("user", "flag", "admin")
"""Whose rules let something run outside."""


class LawOutside(Protocol):
    """What of the law counts for commands outside the sandbox."""

    @property
    def rules(self) -> tuple[Rule, ...]: ...

    @property
    def folders(self) -> tuple[str, ...]: ...

    @property
    def secret(self) -> tuple[str, ...]: ...

    @property
    def writable(self) -> tuple[str, ...]: ...


def tightening_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules that refuse or ask: those for commands, and those for commands outside as if they were for all."""
    return tuple(_for_commands(rule) for rule in rules if rule.decision != "allow")


def question_about(intent: Intent, granted: Collection[str], law: LawOutside, ruled: CommandRuling | None) -> Intent | None:
    """What the user is shown before it runs; None: it may run unasked. `ruled`: what the rules say that refuse or ask."""
    if ruled is not None and ruled.decision == "ask" and ruled.is_by_rule:
        return msgspec.structs.replace(intent, why=ruled.reason)
    if not intent.command or not law.folders:
        return intent
    doubt = _doubt_of_rules(intent, law)
    if doubt == "":
        return None
    words = plain_words(intent.command)
    beginning = find_beginning(words)
    if beginning is None:
        kept = [key.removeprefix(OUTSIDE_KEY) for key in granted if key.startswith(OUTSIDE_KEY)]
        if any(_begins(intent.command, each.partition(LEADS_TO)[0]) for each in kept):
            doubt = doubt or say("policy.outside_not_plain")
        return msgspec.structs.replace(intent, why=doubt or "")
    directory = intent.directory or law.folders[0]
    found = doubt_of_beginning(beginning, words, directory, law.folders, _untrusted(law))
    addresses = addresses_of(beginning, words, directory) if not found else ()
    prefix = " ".join(beginning.words)
    offered = f"{prefix}{LEADS_TO}{' '.join(addresses)}" if addresses else prefix
    allowed = [key.removeprefix(f"{OUTSIDE_KEY}{prefix}") for key in granted if _is_key_of(key, prefix)]
    if not allowed:
        return msgspec.structs.replace(intent, why=doubt or "", prefix="" if found else offered)
    if found:
        return msgspec.structs.replace(intent, why=found)
    if other := sorted({*addresses}.difference(*(each.removeprefix(LEADS_TO).split() for each in allowed))):
        return msgspec.structs.replace(intent, why=say("policy.outside_other_address", addresses=" ".join(other)), prefix=offered)
    return None


def _is_key_of(key: str, prefix: str) -> bool:
    return key == f"{OUTSIDE_KEY}{prefix}" or key.startswith(f"{OUTSIDE_KEY}{prefix}{LEADS_TO}")


def plan_run(intent: Intent, law: LawOutside, *, was_asked: bool) -> OutsideRun:
    """How a command that was allowed runs: as the user would run it, or, where nobody was asked, with programs from trusted folders alone.
    A rule covers what it says, hooks of git too; a beginning that was allowed for the session does not."""
    shown = (intent.command, intent.directory, intent.preview)
    if was_asked:
        return OutsideRun(*shown)
    if _doubt_of_rules(intent, law) == "":
        return OutsideRun(*shown, _untrusted(law))
    from dragoman.policy.git_remotes import git_environment

    return OutsideRun(*shown, _untrusted(law), tuple({**plain_environment(), **git_environment()}.items()))


def _untrusted(law: LawOutside) -> tuple[str, ...]:
    """The folders in which a command in the sandbox, or the model by its tools, may have put a program."""
    return tuple(dict.fromkeys((*law.folders, *law.writable)))


def _for_commands(rule: Rule) -> Rule:
    if rule.tool != OUTSIDE:
        return rule
    told = rule.reason or Ruling(rule.decision, rule).reason
    return msgspec.structs.replace(rule, tool="" if rule.pattern else COMMANDS, reason=told)


def _doubt_of_rules(intent: Intent, law: LawOutside) -> str | None:
    """Why rules do not let it run unasked; empty: they do. None: there is no rule that could."""
    allowing = [_for_commands(rule) for rule in law.rules if _lets_out(rule)]
    if not allowing:
        return None
    around = ReadableFolders(law.folders, law.secret)
    untrusted = ReadableFolders(_untrusted(law))
    try:
        steps = steps_of(read_commands(intent.command), intent.directory or law.folders[0], around)
        for step in steps:
            if not any(fits_step(rule, step, (), around) for rule in allowing):
                return None
        for step in steps:
            if doubt := _doubt_of_place(step.texts[0], step.folders, untrusted) or doubt_of_environment(step.folders, untrusted):
                return doubt
    except (Unclear, TooMuchWork) as unclear:
        return str(unclear)
    return ""


def _lets_out(rule: Rule) -> bool:
    return rule.tool == OUTSIDE and rule.decision == "allow" and bool(rule.pattern) and rule.tier in _COUNTING


def _doubt_of_place(program: str, folders: Sequence[str], untrusted: ReadableFolders) -> str:
    """Why what runs may be something that was put there."""
    if "/" not in program:
        return doubt_of_program(program, untrusted)
    is_there = any(untrusted.holds(os.path.realpath(os.path.join(folder, program))) for folder in folders)
    return say("policy.command_path", name=program) if is_there or not os.path.isabs(program) else ""


def _begins(command: str, prefix: str) -> bool:
    return command.split()[: len(prefix.split())] == prefix.split()
