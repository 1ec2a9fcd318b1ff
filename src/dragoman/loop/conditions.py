"""What the model is told of the conditions it works under: the approval mode, the boundary around commands, and whether anybody can answer.

Each is one line that begins with words of its own (context/environment.py), so that what was told can be read back from the messages.
The lines are made before every request, and nothing is found out for it. A sandbox is looked for at the first command, so what is said of
it before that has to be true without looking.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.context.environment import COMMANDS, MODE, PERSON, Lines, news_text
from dragoman.loop.small_model import wants_short_prompt
from dragoman.policy.approvals import allows_hosts
from dragoman.tools.names import escape_name
from dragoman.values.messages import user

if TYPE_CHECKING:
    from dragoman.loop.harness import Emit, Harness
    from dragoman.policy.sandbox.detection import Detected

Boundary = Literal["", "sandbox", "no_servers", "landlock", "macos", "external", "none"]
"""What is around commands. Empty: there is no tool for them. sandbox: levels 1 and 2, or not known yet. no_servers: level 2, where commands
share no network. landlock: level 3. none: commands have the user's own rights."""
Network = Literal["asks", "hosts", "none"]
"""Whether a host may be reached: the user is asked about new ones, only those allowed before, or none."""
Person = Literal["", "here", "nobody"]
"""Who reads along. Empty: not known."""


class Conditions(msgspec.Struct, frozen=True):
    """The facts at one moment."""

    mode: Literal["plan", "default", "auto-edit", "auto"] = "default"
    has_edits: bool = True
    """Whether there are tools that change files."""
    can_ask: bool = False
    """Whether somebody can approve a call."""
    edits_run: bool = False
    """Whether the user has allowed all edits."""
    has_rules: bool = False
    """Whether rules or saved approvals may allow what the mode would not."""
    boundary: Boundary = ""
    reads_unasked: bool = False
    """Whether commands run with the workspace read-only: at levels 1 and 2."""
    commands_write: bool = False
    """Whether commands in the sandbox write unasked, whatever the mode."""
    network: Network = "none"
    has_sockets: bool = False
    """Whether commands may open UNIX sockets."""
    has_background: bool = False
    writable: tuple[str, ...] = ()
    """Further folders that commands may write."""
    person: Person = ""


async def tell_surroundings(harness: Harness) -> None:
    """Before a prompt: tell the model of its surroundings and of the conditions. All of them at first, later what has changed; and what
    happened meanwhile to files that it knows."""
    history, about, text = harness.session.history, "changed", ""
    if harness.orientation is not None and not wants_short_prompt(harness.session.model):
        lines = condition_lines(conditions_of(harness))
        about, text = await harness.orientation.next_text(history, harness.directories, lines)
    news = await harness.find_file_news()
    if about == "environment" and text:
        history.say(user(text), about)
        about, text = "changed", ""
    if told := news_text(text, news.fragments if news is not None else ()):
        history.say(user(told), about, news.files if news is not None else ())


def tell_news(harness: Harness, emit: Emit) -> None:
    """Before each request: tell the model which background commands have ended, and which of the conditions have changed."""
    harness.tell_ended_commands(emit)
    orientation, history = harness.orientation, harness.session.history
    if orientation is None or wants_short_prompt(harness.session.model):
        return
    if orientation.status is not None:
        orientation.status.begin(history)
    if text := orientation.changes(history, condition_lines(conditions_of(harness))):
        history.say(user(text), "changed")


# --- the facts -----------------------------------------------------------------------------------------------------------


def conditions_of(harness: Harness) -> Conditions:
    """What holds at this moment."""
    approvals, options = harness.approvals, harness.made_with[2]
    saved = approvals.grants.saved  # looked up once: each look asks the system whether the file has changed
    granted = saved | approvals.grants.of_session
    boundary: Boundary = _boundary_of(harness) if harness.has_builtin("run_shell") else ""
    confines = harness.confines
    return Conditions(
        mode=approvals.mode,
        has_edits=any(spec.kind == "edit" for spec in harness.registry.specs),
        can_ask=approvals.has_person,
        edits_run="edit" in granted,
        has_rules=bool(saved - {"edit"}) or any(rule.decision == "allow" for rule in options.rules),
        boundary=boundary,
        reads_unasked=boundary in ("sandbox", "no_servers"),
        commands_write=options.run_sandboxed if approvals.chosen_writing is None else approvals.chosen_writing,
        network=_network_of(harness, granted),
        has_sockets=confines is not None and confines.unix_sockets,
        has_background="shell_output" in harness.registry,
        writable=tuple(escape_name(os.fspath(path)) for path in confines.writable) if confines is not None else (),
        person=_person_of(harness),
    )


def _boundary_of(harness: Harness) -> Boundary:
    said = harness.boundary.for_record
    if said == "external" and harness.has_launcher():
        return "external"
    if said or harness.confines is None:
        return "none"
    known = harness.approvals.known_sandbox
    return _boundary_known(known) if known is not None else "sandbox"


def _boundary_known(known: Detected) -> Boundary:
    match known.level:
        case 1 | 2:
            return "sandbox" if known.can_have_gate else "no_servers"
        case 3:
            return "landlock"
        case 0:
            return "none"
        case _:
            return "macos"


def _network_of(harness: Harness, granted: Collection[str]) -> Network:
    if harness.confines is None or not harness.confines.gate_port:
        return "none"
    approvals, options = harness.approvals, harness.made_with[2]
    if approvals.has_person:
        return "asks"
    return "hosts" if allows_hosts(options.hosts, options.rules, granted) else "none"


def _person_of(harness: Harness) -> Person:
    """A subagent has its own words for that, in its instructions."""
    approvals = harness.approvals
    if harness.called_by is not None:
        return ""
    if approvals.has_person or "ask_user" in harness.registry:
        return "here"
    return "nobody" if not approvals.is_attended else ""


# --- the words -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def condition_lines(now: Conditions) -> Lines:
    """Not to be changed: the same for the same conditions."""
    lines = {MODE: _mode(now), COMMANDS: _commands(now), PERSON: _PERSONS[now.person]}
    return {begins: line for begins, line in lines.items() if line}


_PERSONS: dict[Person, str] = {
    "": "",
    "here": f"{PERSON}I can answer.",
    "nobody": f"{PERSON}nobody can answer or approve anything. Decide yourself, and say what you decided.",
}


def _mode(now: Conditions) -> str:
    if not now.has_edits and not now.boundary:
        return ""
    edits = _edits(now) if now.has_edits else ""
    commands = _approved_commands(now) if now.boundary else ""
    rules = "My rules may allow more." if now.has_rules and now.mode != "plan" else ""
    return f"{MODE}{now.mode}. " + " ".join(filter(None, (edits, commands, rules)))


def _edits(now: Conditions) -> str:
    if now.mode == "plan":
        return "Edits are refused: read, and say what you would change."
    if now.mode != "default" or now.edits_run:
        return "Edits in my directories run unasked."
    return "I am asked about each edit." if now.can_ask else "Edits are refused."


def _approved_commands(now: Conditions) -> str:
    if now.mode != "plan" and now.boundary != "none" and (now.mode == "auto" or now.commands_write):
        return "Commands run unasked within their boundary."
    can_write = now.can_ask and now.mode != "plan"
    if now.reads_unasked:
        writing = " unless you set `writes`, and then I am asked." if can_write else ", and none may write."
        return f"Where the sandbox can, commands run with the workspace read-only{writing}"
    return "I am asked about commands that do more than read." if can_write else "Commands that do more than read are refused."


_NETWORKS: dict[Network, str] = {
    "asks": "The network is an HTTP proxy that asks me about new hosts",
    "hosts": "The network is an HTTP proxy to the hosts I allowed",
    "none": "There is no network",
}


def _commands(now: Conditions) -> str:
    match now.boundary:
        case "":
            return ""
        case "none":
            return f"{COMMANDS}without a sandbox, with my rights."
        case "external":
            return f"{COMMANDS}in a container or virtual machine that I take for the boundary, without further limits."
        case "sandbox" | "no_servers":
            first, temporary, fixed = (
                "in a sandbox, unless I tell you otherwise",
                "a /tmp",
                "all else is read-only, .git/config and hooks too",
            )
        case "macos":
            first, temporary, fixed = "in a sandbox", "$TMPDIR", "all else is read-only, .git/config and hooks too"
        case "landlock":
            first, temporary, fixed = "in a sandbox", "$TMPDIR", "all else is read-only, and changes to .git/config and hooks are undone"
    writable = ", ".join(("my directories", *now.writable))
    return (
        f"{COMMANDS}{first}: they write at most in {writable}, and in {temporary} and caches of their own; {fixed}; secrets are hidden."
        f" {_network(now)} A result says what the sandbox stopped; other failures are not its doing."
    )


def _network(now: Conditions) -> str:
    sockets = "" if now.has_sockets else "; ssh, docker and other programs' sockets do not work"
    match now.boundary:
        case "sandbox":
            servers = " Servers started with `background` answer later commands at 127.0.0.1; mine do not." if now.has_background else ""
            return f"{_NETWORKS[now.network]}{sockets}.{servers}"
        case "no_servers":
            return f"There is no network, and no command reaches another's server{sockets}."
        case _:
            return f"There is no network, not even 127.0.0.1{sockets}."
