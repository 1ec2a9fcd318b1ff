"""What is offered at a question beside "once": all commands with the same beginning, where the beginning says what they do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from dragoman.base.text import set_of
from dragoman.policy.hidden_commands import all_commands, forms_of
from dragoman.policy.read_only_programs import is_known
from dragoman.policy.rules import Rule
from dragoman.policy.running_options import find_running_option
from dragoman.policy.running_programs import runs_anything
from dragoman.policy.work import TooMuchWork, WorkDone
from dragoman.words import say

_SUBCOMMANDS = set_of(
    "npm pnpm yarn bun cargo go git make gmake ninja task uv pip poetry docker kubectl gh dotnet gradle mvn rake bundle composer mix nox "
    "tox just"
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
_ANYTHING_WORDS = set_of("-c -e exec eval install add i ci dlx")
"""Words with which a program runs or brings whatever its arguments say."""


def offered_prefix(opened: Sequence[Sequence[str]]) -> str:
    """How the commands begin that may be allowed together; empty if they differ, or if such commands may do more than these."""
    prefixes = {_prefix_of(words) for words in opened}
    return prefixes.pop() if len(prefixes) == 1 else ""


def is_still_offered(prefix: str) -> bool:
    """Whether a beginning that was allowed earlier, or a shorter one that covers it, would be offered now."""
    words = prefix.split(" ")
    return all(words) and any(_prefix_of(words[:count]) == " ".join(words[:count]) for count in range(1, min(len(words), 3) + 1))


def is_grave(command: str, work: WorkDone | None = None) -> bool:
    """Whether something in a line deletes, pushes, publishes, or acts outside. Read loosely: rather too often than too seldom."""
    work = work or WorkDone()
    try:
        return any(is_grave_form(form) for words in all_commands(command, work) for form in forms_of(words, work))
    except TooMuchWork:
        return True


def is_grave_form(words: Sequence[str]) -> bool:
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
    if runs_anything(words) or any(word in _ANYTHING_WORDS or _stem(word) in _ANYTHING_WORDS for word in words[1:]):
        return ""
    if is_grave_form(words) or (is_known(name) and name != "git"):  # of what we know, the harmless is allowed already
        return ""
    if "/" in words[0] and not words[0].startswith("./"):
        return ""
    count = 1
    if words[0] in _SUBCOMMANDS:
        is_runner = len(words) > 1 and words[1] in _RUNNERS and words[0] != "git"
        if is_runner and len(words) > 2 and runs_anything(words[2:]):
            return ""
        count = 3 if is_runner else 2
    begin = words[:count]
    if len(begin) < count or any(not _is_simple(word) for word in begin) or any(word.startswith("-") for word in begin):
        return ""
    return "" if find_running_option(words, count, is_grant=True) else " ".join(begin)


def _is_simple(word: str) -> bool:
    return bool(word) and all(sign.isalnum() or sign in "_-./:@+" for sign in word) and word.isascii()


def prefix_rule(prefix: str) -> Rule:
    """What the answer "commands that begin with this" means."""
    return Rule("allow", f"{prefix} *", origin=say("policy.rule_granted"), tier="grant")


def prefix_rules(prefixes: Iterable[str]) -> tuple[Rule, ...]:
    """The beginnings that were allowed, as rules; without those that would not be offered any more."""
    return tuple(map(prefix_rule, filter(is_still_offered, prefixes)))
