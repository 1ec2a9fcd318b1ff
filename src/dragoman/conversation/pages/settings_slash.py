"""Slash commands about how a conversation is set: what may run, where the model may work, how much it thinks, the configuration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, get_args

import msgspec

from dragoman.conversation.subcommand import Subcommand, parse_words
from dragoman.policy.judge import Mode
from dragoman.values.errors import InputError
from dragoman.values.messages import Effort, Thinking
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.talk import Talk


def approval(talk: Talk, rest: str) -> None:
    approvals = talk.agent.approvals
    mode = next((mode for mode in get_args(Mode) if mode == rest), None)
    if mode is not None:
        approvals.mode = mode
    elif rest:
        raise InputError(say("no_such_mode", name=rest[:60], known=", ".join(get_args(Mode))))
    allowed = len(approvals.grants.keys)
    saved = say("approval_saved", count=allowed) if allowed else ""
    talk.screen.message(say("approval_is", mode=approvals.mode, meaning=say(f"mode_{approvals.mode}"), saved=saved))
    talk.screen.message(say("sandbox_is", words=approvals.sandbox))


def approvals(talk: Talk, rest: str) -> Subcommand | None:
    """`list` and `--all` are about every folder, as in the shell; the rest about this one and this session."""
    from dragoman.conversation.pages.approvals_command import for_conversation, is_for_every_folder

    if is_for_every_folder(talk.setup, talk.agent.approvals, rest.split()):
        return Subcommand(parse_words(talk.setup, "approvals", rest), talk.screen.columns)
    for line in for_conversation(talk.setup, talk.agent.approvals, rest.split()).splitlines():
        talk.screen.line(line)
    return None


def directory(talk: Talk, rest: str) -> None:
    """`/directory`, `/directory add PATH`."""
    action, _, path = rest.partition(" ")
    if not rest:
        for folder in talk.agent.directories:
            talk.screen.line(folder)
    elif action != "add":
        raise InputError(say("directory_usage"))
    else:
        add_directory(talk, path)


def add_directory(talk: Talk, rest: str) -> None:
    """A relative path is meant from the workspace, as everywhere in the program."""
    agent = talk.agent
    if not rest.strip():
        raise InputError(say("directory_usage"))
    known = agent.directories
    try:
        real = agent.add_directory(os.path.join(agent.workspace.root, os.path.expanduser(rest.strip())))
    except InputError as error:
        talk.screen.message(say("run_failed", message=error), "red")
        return
    talk.screen.message(say("directory_known" if real in known else "directory_added", path=real))


def effort(talk: Talk, rest: str) -> str:
    """How much the model thinks, from the next answer on."""
    agent, known = talk.agent, get_args(Effort)
    chosen = next((each for each in known if each == rest), None)
    if chosen is None:
        thinking = agent.settings.thinking
        return say("conversation.efforts", now=thinking.effort if thinking is not None else "-", known=", ".join(known))
    agent.settings = msgspec.structs.replace(agent.settings, thinking=Thinking(chosen))
    return say("conversation.effort_is", effort=chosen)


def config(talk: Talk, rest: str) -> Subcommand:
    return Subcommand(parse_words(talk.setup, "config", rest), talk.screen.columns)
