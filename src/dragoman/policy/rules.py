"""Rules that users write: which commands and tool calls run, ask, or are refused.

`pytest *` is a rule for commands, `edit src/**` one for edits, `web_fetch example.org` one for a tool. A rule is data; it has the place it
was read from, and may have examples that are checked when it is read.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from dragoman.policy.host_rules import fits_host, is_host
from dragoman.words import say

Decision = Literal["allow", "ask", "deny"]
DECISIONS: tuple[Decision, ...] = ("allow", "ask", "deny")
Tier = Literal["default", "project", "grant", "user", "flag", "admin"]
"""Who says so; each outranks those before it. A refusal holds whoever says it."""
TIERS: tuple[Tier, ...] = ("default", "project", "grant", "user", "flag", "admin")
COMMANDS = "run_shell"
EDITS = "edit"
"""Stands for every tool that edits files."""
NETWORK = "network"
"""Stands for the gate of the sandbox: which hosts commands reach. No tool: the model does not call it."""
OUTSIDE = "outside"
"""Stands for commands that are to run outside the sandbox: `outside git push`. No other rule allows those."""
SERVERS = "mcp__"
"""What the names of tools of MCP servers begin with: `mcp__server__tool`. A rule may name a server alone, or have a `*`."""
TOOLS = frozenset(
    {COMMANDS, EDITS, "read_file", "write_file", "list_directory", "read_many_files", "web_fetch", "google_web_search", "web_search"}
    | {"save_memory", "ask_user", NETWORK, OUTSIDE}
)
"""Names that are tools and no programs. Any other first word is a program, and the tool of that name if there is one."""
MAX_CHARS = 2_000


class RuleProblem(ValueError):
    """A rule cannot be used; the text says why."""

    def __init__(self, *message: object) -> None:  # as ValueError has it, which hides its signature
        super().__init__(*message)


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is decided about calls that fit. `origin` and `tier` say where it comes from."""

    decision: Decision
    pattern: str = ""
    """Words of a command, a path or a host, with `*`; empty: every call of the tool."""
    tool: str = ""
    """Whose calls; empty: commands, and the tool that the pattern begins with."""
    reason: str = ""
    match: tuple[str, ...] = ()
    """Commands, paths or hosts that it must cover."""
    no_match: tuple[str, ...] = ()
    """Those that it must not cover."""
    origin: str = ""
    """File and line, or the option."""
    tier: Tier = "user"

    @property
    def text(self) -> str:
        """The short form."""
        return f"{self.tool} {self.pattern}".strip()

    @property
    def is_for_commands(self) -> bool:
        return self.tool in ("", COMMANDS)

    @property
    def has_words(self) -> bool:
        """Whether its pattern consists of the words of a command."""
        return self.is_for_commands or self.tool == OUTSIDE


def parse_rule(text: str, decision: Decision, *, origin: str = "", tier: Tier = "user") -> Rule:
    """The short form: `pytest *`, `edit src/**`, a tool's name. Raises RuleProblem."""
    if not isinstance(text, str):
        raise RuleProblem(say("policy.rule_no_text"))
    first, _, rest = text.strip().partition(" ")
    if first in TOOLS or first.startswith(SERVERS):
        return check_written(Rule(decision, rest.strip(), first, origin=origin, tier=tier))
    return check_written(Rule(decision, text.strip(), origin=origin, tier=tier))


def allow(text: str, *, reason: str = "") -> Rule:
    """A rule for what runs unasked."""
    return msgspec.structs.replace(parse_rule(text, "allow"), reason=reason)


def ask(text: str, *, reason: str = "") -> Rule:
    """A rule for what is asked about each time."""
    return msgspec.structs.replace(parse_rule(text, "ask"), reason=reason)


def deny(text: str, *, reason: str = "") -> Rule:
    """A rule for what is refused. The model is given `reason`."""
    return msgspec.structs.replace(parse_rule(text, "deny"), reason=reason)


def check_written(rule: Rule) -> Rule:
    """A rule as a person wrote it: also checked for what no command ever fits, so that nobody relies on it. Raises RuleProblem."""
    if rule.tool in _OF_HOSTS and rule.decision == "allow" and rule.pattern and not is_host(rule.pattern):
        raise RuleProblem(say("policy.rule_host", pattern=rule.pattern, tool=rule.tool))
    if not rule.has_words or not rule.pattern:
        return check_rule(rule)
    if form := _CLAUDE_FORM.fullmatch(rule.pattern):
        raise RuleProblem(say("policy.rule_claude", pattern=rule.pattern, ours=_as_ours(form[1], form[2] or "")))
    check_rule(rule)
    first = pattern_words(rule.pattern)[0]
    sign = next((found["sign"] for found in _UNQUOTED.finditer(rule.pattern) if found["sign"]), "")
    if sign:
        raise RuleProblem(say("policy.rule_operator", pattern=rule.pattern, sign=sign))
    if first.startswith("-") or _ASSIGNMENT.match(first):
        raise RuleProblem(say("policy.rule_begin", word=first))
    if rule.decision == "allow" and _VARIABLE.search(rule.pattern):
        raise RuleProblem(say("policy.rule_variable", pattern=rule.pattern))
    return rule


_OF_HOSTS = frozenset({"web_fetch", NETWORK})
_UNQUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(?P<sign>&&|\|\||[|&;<>()`])|.""", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_VARIABLE = re.compile(r"\$[A-Za-z_{(]")
_CLAUDE_TOOLS = {"Bash": "", "Edit": EDITS, "MultiEdit": EDITS, "Write": EDITS, "Read": "read_file", "WebFetch": "web_fetch"}
_CLAUDE_FORM = re.compile(rf"({'|'.join(_CLAUDE_TOOLS)})(?:\((.*)\))?")


def _as_ours(tool: str, inside: str) -> str:
    """A rule as Claude Code writes it, in our words."""
    inside = inside.removeprefix("domain:").removeprefix("./")
    if tool == "Bash":
        return COMMANDS if inside in ("", "*", ":*") else f"{inside.removesuffix(':*')} *" if inside.endswith(":*") else inside
    return f"{_CLAUDE_TOOLS[tool]} {inside}".strip()


def check_rule(rule: Rule) -> Rule:
    """The rule, if it can be used and its examples hold. Raises RuleProblem."""
    for name, known in (("decision", DECISIONS), ("tier", TIERS)):
        if (value := getattr(rule, name)) not in known:
            raise RuleProblem(say("policy.rule_choice", name=name, value=repr(value), choices=", ".join(known)))
    if not rule.text:
        raise RuleProblem(say("policy.rule_empty"))
    if len(rule.text) > MAX_CHARS or any(not sign.isprintable() for sign in rule.text):
        raise RuleProblem(say("policy.rule_text"))
    if rule.tool == OUTSIDE and rule.decision == "allow" and not rule.pattern:
        raise RuleProblem(say("policy.rule_outside_bare"))
    if rule.has_words and rule.pattern:
        words = pattern_words(rule.pattern)
        if rule.decision == "allow" and "*" in words[0]:
            raise RuleProblem(say("policy.rule_any_program", pattern=rule.pattern))
    for example in rule.match:
        if not covers_example(rule, example):
            raise RuleProblem(say("policy.rule_match", example=example))
    for example in rule.no_match:
        if covers_example(rule, example):
            raise RuleProblem(say("policy.rule_no_match", example=example))
    return rule


def render_rule(rule: Rule) -> str:
    """The full form, as a table of TOML."""
    lines = ["[[rules.rule]]", f"decision = {_quoted(rule.decision)}"]
    lines += [f"{name} = {_quoted(value)}" for name in ("tool", "pattern", "reason") if (value := getattr(rule, name))]
    for name in ("match", "no_match"):
        if values := getattr(rule, name):
            lines.append(f"{name} = [{', '.join(map(_quoted, values))}]")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML string. JSON's escapes are TOML's, but for the slash and DEL."""
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")


# --- does a rule fit


@lru_cache(2048)
def pattern_words(pattern: str) -> tuple[str, ...]:
    """Kept, because every rule is held against every command. Raises RuleProblem."""
    try:
        words = shlex.split(pattern)
    except ValueError as error:
        raise RuleProblem(say("policy.rule_quotes", pattern=pattern)) from error
    if not words:
        raise RuleProblem(say("policy.rule_empty"))
    return tuple(words)


def fits_words(pattern: Sequence[str], words: Sequence[str], *, is_prefix: bool) -> bool:
    """Word by word; `*` in a word stands for any characters of it, a last word `*` for any further words. `is_prefix`: more may follow."""
    if pattern and pattern[-1] == "*":
        pattern, is_prefix = pattern[:-1], True
    if len(words) < len(pattern) or (not is_prefix and len(words) != len(pattern)):
        return False
    return all(fits_word(one, other) for one, other in zip(pattern, words, strict=False))


def fits_word(pattern: str, word: str) -> bool:
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == word
    if not word.startswith(first) or len(word) < len(pattern) - len(rest):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = word.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return word.endswith(rest[-1]) and len(word) - len(rest[-1]) >= at


def fits_path(pattern: str, path: str) -> bool:
    """`*` stands for a part of a name, `**` for any number of folders, also none."""
    pattern = pattern.removeprefix("./")
    expression = "".join(_PATH_PARTS.get(part) or re.escape(part) for part in re.split(r"(/\*\*$|\*\*/|\*\*|\*|\?)", pattern) if part)
    return re.fullmatch(expression, path, re.DOTALL) is not None


_PATH_PARTS = {"/**": "(?:/.*)?", "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def fits_target(pattern: str, target: str, root: str) -> bool:
    """Whether a path fits: by its place in the workspace, or by its whole name if the pattern begins with `/` or `~`."""
    if pattern.startswith(("/", "~")):
        return fits_path(os.path.expanduser(pattern), target)
    if not root or not (target == root or target.startswith(root.rstrip("/") + "/")):
        return pattern in ("**", "*")
    return fits_path(pattern, os.path.relpath(target, root))


def covers_example(rule: Rule, example: str) -> bool:
    """Whether an example in a rule's own table fits it."""
    if not rule.has_words:
        if not rule.pattern:
            return True
        return fits_path(rule.pattern, example) or fits_host(rule.pattern, example, is_refusal=rule.decision != "allow")
    if not rule.pattern:
        return True
    try:
        words = shlex.split(example)
    except ValueError:
        return False
    return fits_words(pattern_words(rule.pattern), words, is_prefix=rule.decision != "allow")


# --- the rules together


class Ruling(msgspec.Struct, frozen=True):
    """What the rules decide about a call, and which rule does."""

    decision: Decision
    rule: Rule | None = None

    @property
    def reason(self) -> str:
        if self.rule is None:
            return ""
        return self.rule.reason or say("policy.rule_says", decision=self.rule.decision, text=self.rule.text, origin=self.rule.origin or "?")


def decide(rules: Iterable[Rule]) -> Ruling | None:
    """What the rules that fit say together: a refusal wins; else the highest tier, and within it the question."""
    chosen: Rule | None = None
    for rule in rules:
        if rule.tier == "project" and rule.decision == "allow":
            continue  # a project may only tighten
        if rule.decision == "deny":
            return Ruling("deny", rule)
        if chosen is None or (TIERS.index(rule.tier), rule.decision == "ask") > (TIERS.index(chosen.tier), chosen.decision == "ask"):
            chosen = rule
    return Ruling(chosen.decision, chosen) if chosen is not None else None
