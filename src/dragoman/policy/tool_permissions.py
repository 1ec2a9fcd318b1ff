"""`permission` of an opencode agent, held against a call as opencode does it: of the entries that fit, the last decides.

Each entry names an action (`edit`, `bash`, a server's tool, `*`), what it is done to (a path, a command, `*`) and an effect. Where a call
cannot be compared with what stands there, an entry that refuses or asks fits, and one that allows does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from dragoman.base.beneath import is_inside
from dragoman.policy.claude_rules import allowing_rules
from dragoman.policy.command_rules import fits_step
from dragoman.policy.commands import CommandStep, ReadableFolders, steps_of
from dragoman.policy.hidden_commands import all_commands, forms_of
from dragoman.policy.judge import Law
from dragoman.policy.rules import SERVERS, Rule, RuleProblem, fits_words, pattern_words
from dragoman.policy.shell_grammar import read_commands
from dragoman.policy.shell_words import Unclear
from dragoman.policy.work import TooMuchWork, WorkDone
from dragoman.values.calls import Intent
from dragoman.values.messages import ToolSpec

Effect = Literal["allow", "ask", "deny"]
Permission = tuple[str, str, Effect]
"""Action, resource and effect."""
EFFECTS: tuple[Effect, ...] = ("allow", "ask", "deny")
OUTSIDE = "external_directory"
_EDITING = ("edit", "patch", "apply_patch", "multiedit", "write")
_CALLING = ("task", "subagent")
_ACTIONS: dict[str, tuple[str, ...]] = {
    "run_shell": ("bash", "shell"),
    "read_file": ("read",),
    "read_many_files": ("read",),
    "list_directory": ("list",),
    "glob": ("glob",),
    "grep": ("grep",),
    "web_fetch": ("webfetch",),
    "google_web_search": ("websearch",),
    "todo": ("todowrite", "todoread"),
    "ask_user": ("question",),
    "activate_skill": ("skill",),
}
"""What opencode calls the actions of our tools."""
_OWN_NAMES = {"write_file": ("write", "write_file"), "web_fetch": ("web_search",), "google_web_search": ("web_search",)}
"""Names under which a tool is refused, whatever else is said of its kind: Codex has one switch for the web."""


def stricter(one: Effect, other: Effect) -> Effect:
    return max(one, other, key=EFFECTS.index)


def effect_on_agent(permissions: Sequence[Permission], name: str) -> Effect:
    """What a list says of calling a subagent of this name."""
    about = [(resource, said) for action, resource, said in permissions if any(fits_wild(action, each) for each in _CALLING)]
    return _last(about, lambda resource, said: fits_wild(resource, name))


def effect_of(permissions: Sequence[Permission], spec: ToolSpec, intent: Intent, law: Law) -> Effect:
    """What a list says of a call; `allow` where nothing in it fits."""
    if spec.name == "shell_output":  # it shows what a command that was allowed has printed
        return "allow"
    if spec.name in _CALLING:  # those that may not be called are not among its agents
        return (
            "ask"
            if any(said == "ask" and any(fits_wild(action, each) for each in _CALLING) for action, _, said in permissions)
            else "allow"
        )
    try:
        return _effect_by_name(permissions, spec, intent, law)
    except TooMuchWork:  # what it may run is not known
        return max(("ask", *(said for _, _, said in permissions)), key=EFFECTS.index)


def _effect_by_name(permissions: Sequence[Permission], spec: ToolSpec, intent: Intent, law: Law) -> Effect:
    """Raises TooMuchWork."""
    effect = _said_of_path_outside(permissions, intent, law)
    names, own = _names_of(spec), _OWN_NAMES.get(spec.name, ())
    for about in (
        [(resource, said) for action, resource, said in permissions if any(fits_wild(action, name) for name in names)],
        [(resource, said) for action, resource, said in permissions if action in own],
    ):
        effect = stricter(effect, _command_effect(about, intent, law) if intent.command else _effect_on(about, spec, intent, law))
    return effect


def _names_of(spec: ToolSpec) -> Sequence[str]:
    """What a call of a tool may be called. Newer versions know `edit` alone: what is said of writing holds for it."""
    if spec.kind == "edit":
        return (*_EDITING, spec.name)
    if spec.name.startswith(SERVERS):
        return (spec.name, spec.name.removeprefix(SERVERS).replace("__", "_"))
    return (*_ACTIONS.get(spec.name, ()), spec.name)


def _effect_on(about: Sequence[tuple[str, Effect]], spec: ToolSpec, intent: Intent, law: Law) -> Effect:
    paths = intent.writes or intent.reads
    if not paths or spec.name in ("glob", "grep"):  # there it is the pattern that is compared
        return _last(about, lambda resource, said: resource == "*" or said != "allow")
    root = law.folders[0] if law.folders else ""
    effect: Effect = "allow"
    for path in paths:
        found = _last(about, lambda resource, said, path=path: _fits_path(resource, path, root, is_refusal=said != "allow"))
        effect = stricter(effect, found)
    return effect


def _last(about: Sequence[tuple[str, Effect]], fits: Callable[[str, Effect], bool]) -> Effect:
    return next((said for resource, said in reversed(about) if fits(resource, said)), "allow")


def _fits_path(pattern: str, path: str, root: str, *, is_refusal: bool) -> bool:
    """By its place in the workspace, or by its whole name; a refusal also by its name alone."""
    pattern = os.path.expanduser(pattern.replace("$HOME", "~", 1) if pattern.startswith("$HOME") else pattern)
    names = [path, *([os.path.relpath(path, root)] if root and is_inside(path, root) else ())]
    names += [os.path.basename(path)] if is_refusal else []
    return any(fits_wild(pattern.removeprefix("./"), name) for name in names)


def _said_of_path_outside(permissions: Sequence[Permission], intent: Intent, law: Law) -> Effect:
    about = [(resource, said) for named, resource, said in permissions if named == OUTSIDE]
    if not about or not law.folders:
        return "allow"
    effect: Effect = "allow"
    for path in _paths_outside(intent, law):
        effect = stricter(effect, _last(about, lambda resource, said, path=path: _fits_path(resource, path, "", is_refusal=False)))
    return effect


def _paths_outside(intent: Intent, law: Law) -> Iterator[str]:
    """The paths outside the workspace that a call names, as far as its words show it."""
    directory = intent.directory or law.folders[0]
    words = [word for command in all_commands(intent.command, WorkDone()) for word in command[1:]] if intent.command else []
    named = [os.path.join(directory, os.path.expanduser(word)) for word in words if word.startswith(("/", "~", "..")) or "/.." in word]
    for path in (*intent.writes, *intent.reads, *(os.path.normpath(each) for each in named), *filter(None, [intent.directory])):
        if path != os.devnull and not any(is_inside(path, folder) for folder in law.folders):
            yield path


# --- commands


def _command_effect(about: Sequence[tuple[str, Effect]], intent: Intent, law: Law) -> Effect:
    """The strictest of what is said of every command in a line, hidden ones too; of a line that cannot be read, the strictest of all."""
    if not about:
        return "allow"
    around = ReadableFolders(law.folders, law.secret)
    steps = read_steps(intent, law)
    if not steps:
        return max((said for _, said in about), key=EFFECTS.index)
    effect: Effect = "allow"
    for step in steps:
        effect = stricter(effect, _said_of_step(about, step, around))
    seen = {step.texts for step in steps}
    for words in all_commands(intent.command, around.work):
        if words not in seen:
            effect = stricter(effect, _last(about, lambda pattern, said, words=words: _begins(pattern, words, around.work)))
    return effect


def read_steps(intent: Intent, law: Law) -> Sequence[CommandStep]:
    """The commands of a line; none where it cannot be read, or where nobody says which folder is the workspace."""
    try:
        commands = read_commands(intent.command) if law.folders else None
    except Unclear:
        return ()
    around = ReadableFolders(law.folders, law.secret)
    return steps_of(commands, intent.directory or law.folders[0], around) if commands is not None else ()


def _said_of_step(about: Sequence[tuple[str, Effect]], step: CommandStep, around: ReadableFolders) -> Effect:
    for pattern, said in reversed(about):
        if said != "allow" and _begins(pattern, step.texts, around.work):
            return said
        if said == "allow" and _fits_text(pattern, step.texts):
            return "allow" if pattern == "*" else effect_on_step(step, _rules_of(pattern), around, otherwise="ask")
    return "allow"


def _begins(pattern: str, words: Sequence[str], work: WorkDone) -> bool:
    """For what refuses or asks: by whatever path the program is called, and behind programs that run others."""
    return any(_fits_text(pattern, form) for form in forms_of(words, work))


def _fits_text(pattern: str, words: Sequence[str]) -> bool:
    text = " ".join(words)
    return fits_wild(pattern, text) or (pattern.endswith(" *") and fits_wild(pattern[:-2], text))


def _rules_of(pattern: str) -> Sequence[Rule]:
    try:
        return allowing_rules(f"Bash({pattern})", pattern)
    except RuleProblem:
        return ()


def effect_of_commands(intent: Intent, rules: Sequence[Rule], law: Law) -> Effect:
    """Whether every command of a line is one of those that rules allow. A line that cannot be read is none of them."""
    around = ReadableFolders(law.folders, law.secret)
    try:
        effect: Effect = "allow" if (steps := read_steps(intent, law)) else "deny"
        for step in steps:
            effect = stricter(effect, effect_on_step(step, rules, around))
    except TooMuchWork:
        return "deny"
    return effect


def effect_on_step(step: CommandStep, rules: Sequence[Rule], around: ReadableFolders, otherwise: Effect = "deny") -> Effect:
    """`ask` for a command that begins as a rule says and goes on with options by which it may do something else."""
    forms = tuple(forms_of(step.texts, around.work))
    if any(fits_step(rule, step, forms, around) for rule in rules):
        return "allow"
    return "ask" if any(fits_words(pattern_words(rule.pattern), step.texts, is_prefix=False) for rule in rules) else otherwise


def fits_wild(pattern: str, text: str) -> bool:
    """`*` stands for any characters, `?` for one. The time it takes grows with both lengths and no faster."""
    at, place, star, again = 0, 0, -1, 0
    while place < len(text):
        if at < len(pattern) and pattern[at] == "*":
            star, again = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", text[place]):
            at, place = at + 1, place + 1
        elif star >= 0:
            again += 1
            at, place = star + 1, again
        else:
            return False
    return not pattern[at:].strip("*")
