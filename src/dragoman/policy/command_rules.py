"""Judges a whole command line: the rules that fit each command in it, then what only reads."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from dragoman.base.text import set_of
from dragoman.base.words import say
from dragoman.policy.commands import CommandStep, ReadableFolders, find_doubt, steps_of
from dragoman.policy.hidden_commands import all_commands, forms_of, mentions, takes_commands
from dragoman.policy.read_only_git import is_reading_subcommand
from dragoman.policy.read_only_programs import find_reads, is_known
from dragoman.policy.rules import Decision, Rule, Ruling, decide, fits_words, pattern_words
from dragoman.policy.running_options import find_running_option
from dragoman.policy.shell_grammar import read_commands
from dragoman.policy.shell_words import Unclear

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


def judge_command(command: str, directory: str, rules: Sequence[Rule], around: ReadableFolders) -> CommandRuling:
    """Whether a command line, started in a folder, may run. A refusal is found even where the line cannot be read."""
    about = [rule for rule in rules if rule.is_for_commands]
    tightening = [rule for rule in about if rule.decision != "allow"]
    if tightening and (refusal := _find_refusal(command, tightening)):
        return CommandRuling("deny", refusal.reason, is_by_rule=True)
    try:
        steps = steps_of(read_commands(command), directory, around)
    except Unclear as unclear:
        # A rule that asks or refuses may be about something in it: then no sandbox makes up for reading it.
        hides = bool(tightening) and _hides_commands(command, directory, rules, around)
        return CommandRuling("ask", str(unclear), is_by_rule=hides, is_clear=False)
    if tightening and any(takes_commands(step.texts) for step in steps):
        return CommandRuling("ask", say("policy.shell_piped"), is_by_rule=True, open=tuple(step.texts for step in steps))
    for rule in tightening:
        for step in steps if rule.pattern else ():
            if mentions(step.texts, pattern_words(rule.pattern)) and find_doubt(step, around):
                reason = say("policy.shell_code", name=step.texts[0], pattern=rule.pattern)
                return CommandRuling("ask", reason, is_by_rule=True, open=tuple(step.texts for step in steps))
    ruling = _judge_steps(steps, about, around)
    if ruling.is_by_rule or not (asking := [rule for rule in tightening if rule.decision == "ask"]):
        return ruling
    # In a string that a shell is given. On the commands themselves a higher rule may have decided.
    hidden = _first_fitting(command, asking, without=frozenset(step.texts for step in steps))
    return ruling if hidden is None else CommandRuling("ask", hidden.reason, is_by_rule=True, open=tuple(step.texts for step in steps))


def _hides_commands(command: str, directory: str, rules: Sequence[Rule], around: ReadableFolders) -> bool:
    """Whether a line that cannot be read may run more than can be seen. Where only the file is unknown that output goes to, it does not,
    and the rules hold for the rest."""
    plain = _INTO_FILE.sub(r"\1/dev/null", command)
    return plain == command or judge_command(plain, directory, rules, around).is_by_rule


def _judge_steps(steps: Sequence[CommandStep], rules: Sequence[Rule], around: ReadableFolders) -> CommandRuling:
    open_steps: list[tuple[str, ...]] = []
    reason, is_by_rule = "", False
    for step in steps:
        ruling = decide(rule for rule in rules if fits_step(rule, step, around))
        if ruling is not None and ruling.decision == "allow":
            continue
        doubt = ruling.reason if ruling is not None else find_doubt(step, around)
        if doubt:
            open_steps.append(step.texts)
            reason = reason or doubt
            is_by_rule = is_by_rule or ruling is not None
    return CommandRuling("ask" if open_steps else "allow", reason, is_by_rule, open=tuple(open_steps))


def fits_step(rule: Rule, step: CommandStep, around: ReadableFolders) -> bool:
    if rule.decision != "allow":
        return _forbids(rule, step.texts)
    if not rule.pattern:
        return True
    pattern = pattern_words(rule.pattern)
    if rule.tier == "grant" and any(map(_is_grave, forms_of(step.texts))):
        return False  # "commands that begin so" was said of another one
    return fits_words(pattern, step.texts, is_prefix=False) and (pattern[-1] != "*" or _is_covered(pattern[:-1], step, around))


def _is_covered(given: Sequence[str], step: CommandStep, around: ReadableFolders) -> bool:
    """A closing `*` covers anything, except for programs whose options we know: there it covers what only reads, unless the rule itself
    names more. So `find *` does not cover `-exec`, and `find . -exec *` does."""
    texts = step.texts
    if find_running_option(texts, len(given)):
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


def _find_refusal(command: str, rules: Sequence[Rule]) -> Ruling | None:
    denying = [rule for rule in rules if rule.decision == "deny"]
    for rule in denying:
        if not rule.pattern:
            return Ruling("deny", rule)
    return _first_fitting(command, denying)


def _first_fitting(command: str, rules: Sequence[Rule], *, without: frozenset[tuple[str, ...]] = frozenset()) -> Ruling | None:
    for words in all_commands(command):
        for rule in rules if words not in without else ():
            if _forbids(rule, words):
                return Ruling(rule.decision, rule)
    return None


def _forbids(rule: Rule, words: Sequence[str]) -> bool:
    """A rule that asks or refuses covers everything that begins with its pattern, the program by whatever path, and behind wrappers."""
    if not rule.pattern:
        return True
    pattern = pattern_words(rule.pattern)
    return any(fits_words(pattern, form, is_prefix=True) for form in forms_of(words))


# --- what is offered at the question

_SUBCOMMANDS = set_of(
    "npm pnpm yarn bun cargo go git make uv pip poetry docker kubectl gh dotnet gradle mvn rake bundle composer mix nox tox just"
)
_RUNNERS = frozenset({"run", "tool"})
_GRAVE = set_of(
    "rm rmdir unlink shred dd mkfs truncate kill pkill killall shutdown reboot sudo su doas ssh scp sftp rsync curl wget nc ncat socat "
    "chown chroot unshare nsenter docker podman kubectl terraform ansible systemctl crontab at twine gh aws gcloud az heroku "
    "vercel netlify fly flyctl wipefs fdisk parted sfdisk dropdb dropuser userdel groupdel deluser delgroup ansible-playbook helm pulumi "
    "cdk serverless sls wrangler firebase doctl eksctl oc nomad vault terragrunt packer vagrant skaffold docker-compose nerdctl buildah "
    "lxc glab hub mail sendmail mutt telnet ftp lftp aria2c rclone s3cmd gsutil ssh-copy-id iptables nft ufw launchctl"
)
_GRAVE_WORDS = set_of(
    "push publish deploy release delete remove rm prune clean uninstall reset destroy drop purge upload unpublish yank login logout "
    "adduser force hard clear expire erase wipe discard-changes filter-branch filter-repo force-delete flushall flushdb"
)
"""What deletes, pushes, publishes, or acts outside this folder and this machine: never allowed once and for all."""
_DATABASES = set_of("psql mysql mariadb sqlite3 mongosh mongo redis-cli cqlsh clickhouse-client duckdb usql")
_DELETING = re.compile(r"(?<![a-z])(?:drop|delete|truncate|flushall|flushdb|dropdatabase|deletemany)(?![a-z])", re.IGNORECASE)
_GIT_DELETES = set_of("branch tag update-ref notes replace")
"""Subcommands of git that delete a name with `-d`."""
_GIT_OVERWRITES = set_of("checkout restore switch")
"""Those that can write over files that were changed."""
_ANYTHING = set_of(
    "bash sh dash zsh ksh fish env xargs eval exec source . command builtin nohup setsid time timeout nice python python3 node ruby perl "
    "php lua deno bun awk gawk osascript npx pnpx uvx pipx tee find watch parallel screen tmux script busybox install ln cp mv chmod trap"
)
_ANYTHING_WORDS = set_of("-c -e exec eval install add i ci dlx")
"""Programs that run or change whatever their arguments say: allowed as exact commands only, not by how they begin."""


def offered_prefix(opened: Sequence[Sequence[str]]) -> str:
    """How the commands begin that may be allowed together; empty if they differ, or if such commands may do more than these."""
    prefixes = {_prefix_of(words) for words in opened}
    return prefixes.pop() if len(prefixes) == 1 else ""


def is_grave(command: str) -> bool:
    """Whether something in a line deletes, pushes, publishes, or acts outside. Read loosely: rather too often than too seldom."""
    return any(_is_grave(form) for words in all_commands(command) for form in forms_of(words))


def _is_grave(words: Sequence[str]) -> bool:
    name = os.path.basename(words[0])
    if name in _GRAVE or name.startswith("mkfs") or any(_stem(word) in _GRAVE_WORDS for word in words[1:]):
        return True
    if name in _DATABASES:
        return any(_DELETING.search(word) for word in words[1:])
    return name == "git" and len(words) > 1 and _discards(words[1], words[2:])


def _discards(subcommand: str, rest: Sequence[str]) -> bool:
    """Whether git deletes a name, or writes over files that were changed."""
    letters = "".join(word for word in rest if word.startswith("-") and not word.startswith("--"))
    if subcommand in _GIT_DELETES:
        return "d" in letters.lower()
    if subcommand in _GIT_OVERWRITES:
        return subcommand == "restore" or "--" in rest or "." in rest or not {"f", "B", "C"}.isdisjoint(letters)
    return False


def _stem(word: str) -> str:
    """`--delete=x`, `-delete` and `delete:all` are all about deleting."""
    return word.lower().lstrip("-").partition("=")[0].partition(":")[0]


def _prefix_of(words: Sequence[str]) -> str:
    name = os.path.basename(words[0])
    runs_anything = name in _ANYTHING or any(word in _ANYTHING_WORDS or _stem(word) in _ANYTHING_WORDS for word in words[1:])
    if runs_anything or _is_grave(words) or (is_known(name) and name != "git"):  # of what we know, the harmless is allowed already
        return ""
    if "/" in words[0] and not words[0].startswith("./"):
        return ""
    count = 1
    if words[0] in _SUBCOMMANDS:
        count = 3 if len(words) > 2 and words[1] in _RUNNERS and words[0] != "git" else 2
    begin = words[:count]
    if len(begin) < count or any(not _is_simple(word) for word in begin) or any(word.startswith("-") for word in begin):
        return ""
    return " ".join(begin)


def _is_simple(word: str) -> bool:
    return bool(word) and all(sign.isalnum() or sign in "_-./:@+" for sign in word) and word.isascii()


def prefix_rule(prefix: str) -> Rule:
    """What the answer "commands that begin with this" means."""
    return Rule("allow", f"{prefix} *", origin=say("policy.rule_granted"), tier="grant")
