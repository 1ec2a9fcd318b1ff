"""Commands about how things are set: thinking, the configuration, trust, the sandbox, memory, the session's title; and the task list."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, get_args

import msgspec

from dragoman.base.places import shorten_home
from dragoman.base.words import say
from dragoman.tui.calls import Folded
from dragoman.tui.overlay import Viewer
from dragoman.tui.picker import Picker, PickerItem
from dragoman.values.messages import Effort, Thinking

if TYPE_CHECKING:
    from dragoman.tui.talk import LiveTalk

# Sent to the model: in English, whatever the program's language.
INIT_PROMPT = """Look at this project and write AGENTS.md in its root: what an agent that works here has to know and cannot see at once.
How to build, run and test it (the exact commands, also for a single test), how the code is organised, conventions that are kept, and
pitfalls. At most a page. If there is an AGENTS.md already, improve it and keep what is still true."""


def choose_effort(conversation: LiveTalk, rest: str) -> None:
    """`/effort`: how much the model thinks, from the next answer on."""
    if rest:
        return _set_effort(conversation, rest)
    thinking = conversation.agent.settings.thinking
    now = thinking.effort if thinking is not None else ""
    items = [
        PickerItem(effort, (effort, say(f"conversation.effort_{effort}"), say("conversation.model_now") if effort == now else ""))
        for effort in get_args(Effort)
    ]
    conversation.canvas.open(Picker(say("conversation.effort_title"), items, lambda key: _set_effort(conversation, key), yielding=1))
    return None


def _set_effort(conversation: LiveTalk, name: str) -> None:
    effort = next((each for each in get_args(Effort) if each == name), None)
    if effort is None:
        conversation.screen.message(say("conversation.no_such_effort", name=name[:40], known=", ".join(get_args(Effort))), "yellow")
        return
    agent = conversation.agent
    agent.settings = msgspec.structs.replace(agent.settings, thinking=Thinking(effort))
    conversation.screen.message(say("conversation.effort_is", effort=effort))


def show_config(conversation: LiveTalk) -> None:
    """`/config`: every setting, its value and where it comes from."""
    from dragoman.cli.show_config import config_text

    conversation.canvas.open(Viewer([Folded("dragoman config", config_text(conversation.setup))]))


def rename(conversation: LiveTalk, rest: str) -> None:
    if not rest:
        conversation.screen.message(say("conversation.rename_usage"), "yellow")
        return
    conversation.agent.history.title(" ".join(rest.split())[:200])
    conversation.show_title()
    conversation.screen.message(say("conversation.renamed", title=rest))


def show_todo(conversation: LiveTalk) -> None:
    from dragoman.tui.todo_panel import all_lines, items_of

    items = items_of(conversation.agent)
    if not items:
        conversation.screen.message(say("conversation.todo_none"))
    conversation.canvas.commit(all_lines(items, conversation.canvas.columns))


def show_memory(conversation: LiveTalk) -> None:
    """`/memory`: the files the model was told of at the start, and your own."""
    agent, own = conversation.agent, conversation.setup.places.memory_file
    named = dict.fromkeys(item.name for item in agent.plan().items if item.kind == "memory" and item.name)
    texts = [Folded(shorten_home(path), _read(path)) for path in (*named, own) if os.path.isfile(path)]
    if texts:
        conversation.canvas.open(Viewer(texts))
    else:
        conversation.screen.message(say("conversation.memory_none", path=shorten_home(own)))


def show_sandbox(conversation: LiveTalk) -> None:
    conversation.screen.message(say("sandbox_is", words=conversation.agent.approvals.sandbox))


def show_trust(conversation: LiveTalk, rest: str) -> None:
    """`/trust`: trust this folder from the next start on; `/trust revoke` takes it back."""
    from dragoman.cli.trust_command import run_trust

    options = msgspec.structs.replace(conversation.setup.options, words=(), revoke=rest == "revoke", output_format="text")
    for each in run_trust(options).splitlines():
        conversation.screen.line(each)
    conversation.screen.message(say("conversation.trust_next_start"), "dim")


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1_000_000)
    except OSError as error:
        return error.strerror or str(error)
