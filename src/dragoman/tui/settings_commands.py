"""Commands about how things are set: thinking, the configuration, trust, memory, the session's title; and the task list."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

import msgspec

from dragoman.app.opening import read_memory
from dragoman.base.found_files import read_found_text
from dragoman.base.places import shorten_home
from dragoman.base.visible import escape_hidden
from dragoman.tui.calls import Folded
from dragoman.tui.overlay import Viewer
from dragoman.tui.picker import Picker, PickerItem
from dragoman.values.messages import Effort
from dragoman.words import chosen_language, say

if TYPE_CHECKING:
    from dragoman.tui.talk import LiveTalk

# Sent to the model: in English, whatever the program's language.
INIT_PROMPT = """Look at this project and write AGENTS.md in its root: what an agent that works here has to know and cannot see at once.
How to build, run and test it (the exact commands, also for a single test), how the code is organised, conventions that are kept, and
pitfalls. At most a page. If there is an AGENTS.md already, improve it and keep what is still true."""


def choose_effort(conversation: LiveTalk, take: Callable[[str], None]) -> None:
    """`/effort`: how much the model thinks, from the next answer on."""
    thinking = conversation.agent.settings.thinking
    now = thinking.effort if thinking is not None else ""
    items = [
        PickerItem(effort, (effort, say(f"conversation.effort_{effort}"), say("conversation.model_now") if effort == now else ""))
        for effort in get_args(Effort)
    ]
    conversation.canvas.open(Picker(say("conversation.effort_title"), items, take, yielding=1))


def show_todo(conversation: LiveTalk) -> None:
    from dragoman.tui.todo_panel import all_lines, items_of

    items = items_of(conversation.agent)
    if not items:
        conversation.screen.message(say("conversation.todo_none"))
    conversation.canvas.commit(all_lines(items, conversation.canvas.columns))


def show_memory(conversation: LiveTalk) -> None:
    """`/memory`: the memory files the model was given at the start, and your own."""
    agent, own = conversation.agent, conversation.setup.places.memory_file
    named = dict.fromkeys(item.name for item in agent.plan().items if item.kind == "memory" and item.name)
    if not agent.history.view.messages:  # the model gets them with the first prompt
        named = dict.fromkeys(path for path, _ in read_memory(conversation.setup)[0])
    texts = [Folded(shorten_home(path), _read(path)) for path in (*named, own) if os.path.isfile(path)]
    if texts:
        conversation.canvas.open(Viewer(texts))
    else:
        conversation.screen.message(say("conversation.memory_none", path=shorten_home(own)))


def show_trust(conversation: LiveTalk, rest: str) -> None:
    """`/trust`: trust this folder from the next start on, or say that it is; `/trust revoke` takes it back."""
    from dragoman.conversation.pages.trust_command import run_trust

    trust = conversation.setup.trust
    if rest != "revoke" and trust.is_trusted and trust.by in ("saved", "answer"):
        names = ", ".join(escape_hidden(name, one_line=True) for name in trust.files) or say("trust_no_files")
        folder = escape_hidden(shorten_home(trust.folder), one_line=True)
        conversation.screen.message(say("conversation.trust_already", folder=folder, names=names))
        return
    options = msgspec.structs.replace(
        conversation.setup.options, words=(), revoke=rest == "revoke", output_format="text", lang=chosen_language()
    )
    for each in run_trust(options).splitlines():
        conversation.screen.line(each)
    conversation.screen.message(say("conversation.trust_next_start"), "dim")


def _read(path: str) -> str:
    try:
        return read_found_text(path, 1_000_000, cut=True, errors="replace")
    except OSError as error:
        return error.strerror or str(error)
