"""Judges a whole command line: the rules that fit each command in it, then what only reads."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

import msgspec

from dragoman.policy.commands import CommandStep, ReadableFolders, find_doubt, steps_of
from dragoman.policy.emptying import find_emptied
from dragoman.policy.hidden_commands import all_commands, forms_of, mentions, takes_commands
from dragoman.policy.offers import is_grave_form
from dragoman.policy.read_only_git import is_reading_subcommand
from dragoman.policy.read_only_programs import find_reads, is_known
from dragoman.policy.rules import Decision, Rule, Ruling, decide, fits_words, pattern_words
from dragoman.policy.running_options import find_running_option
from dragoman.policy.shell_grammar import read_commands
from dragoman.policy.shell_words import Unclear
from dragoman.policy.work import TooMuchWork, WorkDone
from dragoman.words import say

_INTO_FILE = re.compile(r"((?<=\s)(?:[12]?>>?|&>)[ \t]*)(?!/dev/null\b)[A-Za-z0-9_./+-]+(?=[ \t\n;|]|$)")
"""Output that goes to a file with a plain name."""
_HARMLESS_SED = frozenset({"-n", "-E", "-r", "-s", "-u", "-z"})


class CommandRuling(msgspec.Struct, frozen=True):
    """What is decided about a command line."""

    decision: Decision
    reason: str = ""
    is_by_rule: bool = False
    """A rule says so: neither the sandbox nor a grant changes it."""
    is_clear: bool = True
    """False: what the line runs is not certain."""
    open: tuple[tuple[str, ...], ...] = ()
    """The commands, as words, that nothing covers."""


def judge_command(
    command: str, directory: str, rules: Sequence[Rule], around: ReadableFolders, *, work: WorkDone | None = None
) -> CommandRuling:
    """Whether a command line, started in a folder, may run. A refusal is found even where the line cannot be read. What would take too
    much work to judge is asked about, whatever the mode; `work` counts it."""
    around = msgspec.structs.replace(around, work=work or WorkDone())
    try:
        return _judge(command, directory, rules, around)
    except TooMuchWork as bound:
        return CommandRuling("ask", str(bound), is_by_rule=True, is_clear=False)


def _judge(command: str, directory: str, rules: Sequence[Rule], around: ReadableFolders) -> CommandRuling:
    about = [rule for rule in rules if rule.is_for_commands]
    tightening = [rule for rule in about if rule.decision != "allow"]
    if tightening and (refusal := _find_refusal(command, tightening, around.work)):
        return CommandRuling("deny", refusal.reason, is_by_rule=True)
    emptied = find_emptied(command, directory, around.roots, around.work)
    try:
        steps = steps_of(read_commands(command), directory, around)
    except Unclear as unclear:
        if emptied:
            return CommandRuling("ask", say("policy.command_empties", path=emptied), is_by_rule=True, is_clear=False)
        if shown := _find_shown(command, directory, around):
            return CommandRuling("ask", shown, is_by_rule=True, is_clear=False)
        # A rule that asks or refuses may be about something in it: then no sandbox makes up for reading it.
        hides = bool(tightening) and _hides_commands(command, directory, rules, around)
        return CommandRuling("ask", str(unclear), is_by_rule=hides, is_clear=False)
    if emptied and not _is_named(steps, directory, about, around):
        reason = say("policy.command_empties", path=emptied)
        return CommandRuling("ask", reason, is_by_rule=True, open=tuple(step.texts for step in steps))
    # Of what only reads, it is known exactly which files that are (commands.py).
    others = [step for step in steps if step.texts[0] == "cd" or find_doubt(step, around)] if around.denied else ()
    if shown := _find_shown("; ".join(shlex.join(step.texts) for step in others), directory, around):
        return CommandRuling("ask", shown, is_by_rule=True, open=tuple(step.texts for step in steps))
    if tightening and any(takes_commands(step.texts) for step in steps):
        return CommandRuling("ask", say("policy.shell_piped"), is_by_rule=True, open=tuple(step.texts for step in steps))
    for rule in tightening:
        for step in steps if rule.pattern else ():
            if mentions(step.texts, pattern_words(rule.pattern), around.work) and find_doubt(step, around):
                reason = say("policy.shell_code", name=step.texts[0], pattern=rule.pattern)
                return CommandRuling("ask", reason, is_by_rule=True, open=tuple(step.texts for step in steps))
    ruling = _judge_steps(steps, about, around)
    if ruling.is_by_rule or not (asking := [rule for rule in tightening if rule.decision == "ask"]):
        return ruling
    # In a string that a shell is given. On the commands themselves a higher rule may have decided.
    hidden = _first_fitting(command, asking, around.work, without=frozenset(step.texts for step in steps))
    return ruling if hidden is None else CommandRuling("ask", hidden.reason, is_by_rule=True, open=tuple(step.texts for step in steps))


def _find_shown(command: str, directory: str, around: ReadableFolders) -> str:
    """Why a command may show a file that a rule keeps from being read, though the sandbox hides the file itself."""
    if not around.denied:
        return ""
    from dragoman.policy.denied_commands import find_shown  # only where there is such a rule

    path = find_shown(command, directory, around)
    return say("policy.command_denied", path=path) if path else ""


def _is_named(steps: Sequence[CommandStep], directory: str, rules: Sequence[Rule], around: ReadableFolders) -> bool:
    """Whether the user has allowed the commands that empty something word by word."""
    allowing = [rule for rule in rules if rule.decision == "allow" and rule.pattern and rule.tier not in ("project", "grant")]
    named = {pattern_words(rule.pattern) for rule in allowing}
    others = [shlex.join(step.texts) for step in steps if step.texts not in named]
    return len(others) < len(steps) and not find_emptied("; ".join(others), directory, around.roots, around.work)


def _hides_commands(command: str, directory: str, rules: Sequence[Rule], around: ReadableFolders) -> bool:
    """Whether a line that cannot be read may run more than can be seen. Where only the file is unknown that output goes to, it does not,
    and the rules hold for the rest."""
    plain = _INTO_FILE.sub(r"\1/dev/null", command)
    return plain == command or _judge(plain, directory, rules, around).is_by_rule


def _judge_steps(steps: Sequence[CommandStep], rules: Sequence[Rule], around: ReadableFolders) -> CommandRuling:
    open_steps: list[tuple[str, ...]] = []
    reason, is_by_rule = "", False
    needs_forms = any(rule.decision != "allow" or rule.tier == "grant" for rule in rules)
    for step in steps:
        forms = tuple(forms_of(step.texts, around.work)) if needs_forms else ()
        ruling = decide(rule for rule in rules if fits_step(rule, step, forms, around))
        if ruling is not None and ruling.decision == "allow":
            continue
        doubt = ruling.reason if ruling is not None else find_doubt(step, around)
        if doubt:
            open_steps.append(step.texts)
            reason = reason or doubt
            is_by_rule = is_by_rule or ruling is not None
    return CommandRuling("ask" if open_steps else "allow", reason, is_by_rule, open=tuple(open_steps))


def fits_step(rule: Rule, step: CommandStep, forms: Sequence[Sequence[str]], around: ReadableFolders) -> bool:
    """A rule that asks or refuses covers everything that begins with its pattern, the program by whatever path, and behind wrappers."""
    if not rule.pattern:
        return True
    pattern = pattern_words(rule.pattern)
    if rule.decision != "allow":
        return any(fits_words(pattern, form, is_prefix=True) for form in forms)
    if not fits_words(pattern, step.texts, is_prefix=False):
        return False
    is_grant = rule.tier == "grant"
    if is_grant and any(map(is_grave_form, forms)):
        return False  # "commands that begin so" was said of another one
    return pattern[-1] != "*" or _is_covered(pattern[:-1], step, around, is_grant=is_grant)


def _is_covered(given: Sequence[str], step: CommandStep, around: ReadableFolders, *, is_grant: bool) -> bool:
    """A closing `*` covers anything, except for programs whose options we know: there it covers what only reads, unless the rule itself
    names more. So `find *` does not cover `-exec`, and `find . -exec *` does."""
    texts = step.texts
    if find_running_option(texts, len(given), is_grant=is_grant):
        return False
    if not is_known(texts[0]):
        return True
    if texts[0] == "git" and len(given) > 1 and not is_reading_subcommand(texts):
        return not given[1].startswith("-")
    is_ordinary = (
        len(given) == 1 or is_reading_subcommand(given) or find_reads(list(given)) is not None or _HARMLESS_SED.issuperset(given[1:])
    )
    return not is_ordinary or not find_doubt(step, around, given=len(given))


# --- refusals


def _find_refusal(command: str, rules: Sequence[Rule], work: WorkDone) -> Ruling | None:
    denying = [rule for rule in rules if rule.decision == "deny"]
    for rule in denying:
        if not rule.pattern:
            return Ruling("deny", rule)
    return _first_fitting(command, denying, work)


def _first_fitting(
    command: str, rules: Sequence[Rule], work: WorkDone, *, without: frozenset[tuple[str, ...]] = frozenset()
) -> Ruling | None:
    patterns = [pattern_words(rule.pattern) if rule.pattern else () for rule in rules]
    for words in all_commands(command, work) if rules else ():
        for form in forms_of(words, work) if words not in without else ():
            for rule, pattern in zip(rules, patterns, strict=True):
                if fits_words(pattern, form, is_prefix=True):
                    return Ruling(rule.decision, rule)
    return None
