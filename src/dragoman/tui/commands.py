"""Commands that need a live region or another session, beside those that both kinds of conversation have (cli/commands.py)."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from dragoman.base.text import one_line
from dragoman.base.words import choose_language, say
from dragoman.cli.commands import SlashCommands
from dragoman.sessions.projects import session_id_of
from dragoman.tui.theme import NAMES, choose_theme
from dragoman.values.errors import DragomanError, InputError

if TYPE_CHECKING:
    from dragoman.tui.talk import LiveTalk

LANGUAGES = ("en", "zh")
UNLISTED = frozenset(("/exit", "/sessions", "/cost", "/add-dir"))
"""Other names of commands that have one: they work, and are not listed."""


class LiveCommands(SlashCommands):
    def __init__(self, conversation: LiveTalk) -> None:
        super().__init__(conversation)
        self._live = conversation
        own: dict[str, Callable[[str], None]] = {
            "/help": self._list_commands,
            "/model": self._pick_model,
            "/context": self._context,
            "/compress": self._compress,
            "/prune": self._prune,
            "/resume": self._resume,
            "/new": self._new,
            "/fork": self._fork,
            "/undo": self._undo,
            "/agents": self._live_agents,
            "/diff": lambda rest: self._live.show_diffs(),
            "/rewind": self._rewind,
            "/export": self._export,
            "/copy": self._copy,
            "/keys": self._keys,
            "/theme": self._theme,
            "/lang": self._lang,
            "/sessions": self._resume,
            "/rename": lambda rest: self._settings().rename(self._live, rest),
            "/import": self._import,
            "/effort": lambda rest: self._settings().choose_effort(self._live, rest),
            "/config": lambda rest: self._settings().show_config(self._live),
            "/todo": lambda rest: self._settings().show_todo(self._live),
            "/memory": lambda rest: self._settings().show_memory(self._live),
            "/init": lambda rest: self._live.ask(self._settings().INIT_PROMPT),
            "/trust": lambda rest: self._settings().show_trust(self._live, rest),
            "/sandbox": lambda rest: self._settings().show_sandbox(self._live),
            "/add-dir": lambda rest: self._directory(f"add {rest}"),
            "/cost": self._usage,
        }
        self._commands = {**self._commands, **own}

    def run(self, line: str) -> None:
        try:
            super().run(line)
        except DragomanError as error:
            self._say(say("run_failed", message=error), "red")

    def _list_commands(self, rest: str) -> None:
        names = [name for name in self.names if name not in UNLISTED]
        for name in names:
            self._live.screen.line(f"  {name:12} {say(f'conversation.help_{name[1:]}')}")
        self._list_file_commands()
        self._live.screen.line("")
        self._keys(rest)

    # --- subagents

    def _live_agents(self, rest: str) -> None:
        """Those there are, and those at work; `stop NUMBER` ends one of these."""
        if rest:
            return self._stop_agent(rest)
        self._agents(rest)
        for number, (_, title, state) in enumerate(self._live.at_work, 1):
            self._live.screen.line(say("subagents.running", number=str(number), title=one_line(title, 100), state=state))

    def _stop_agent(self, rest: str) -> None:
        action, _, number = rest.partition(" ")
        if action != "stop" or not number.strip():
            return self._say(say("conversation.agents_usage"), "yellow")
        running = self._live.at_work
        chosen = int(number) if number.strip().isdecimal() and len(number) < 4 else 0
        if not 1 <= chosen <= len(running) or not self._live.stop_call(running[chosen - 1][0]):
            return self._say(say("conversation.no_such_agent", number=number.strip()[:20]), "yellow")
        self._say(say("subagents.stopped", title=one_line(running[chosen - 1][1], 100)))

    @staticmethod
    def _settings() -> ModuleType:
        """Loaded when one of its commands is used."""
        from dragoman.tui import settings_commands

        return settings_commands

    # --- lists to pick from

    def _pick_model(self, rest: str) -> None:
        if rest:
            return self._live.change_model(rest)
        from dragoman.tui.pickers import pick_model

        pick_model(self._live)

    def _resume(self, rest: str) -> None:
        from dragoman.tui.session_picker import open_session, pick_session

        if rest:
            open_session(self._live, rest)
        else:
            pick_session(self._live)

    def _rewind(self, rest: str) -> None:
        from dragoman.tui.pickers import pick_prompt

        pick_prompt(self._live)

    def _context(self, rest: str) -> None:
        from dragoman.tui.context_list import show_context

        show_context(self._live)

    # --- the context

    def _compress(self, rest: str) -> None:
        self._live.start(self._sum_up(rest))

    async def _sum_up(self, focus: str) -> None:
        from dragoman.cli.context_change import compression_words

        self._say(say("compressing", model=self._live.agent.model), "dim")
        self._say(compression_words(await self._live.agent.compress(focus)))

    def _prune(self, rest: str) -> None:
        self._say(say("conversation.pruned", count=self._live.agent.prune()))

    # --- sessions and files

    def _new(self, rest: str) -> None:
        setup = self._live.setup
        plain = msgspec.structs.replace(setup, options=msgspec.structs.replace(setup.options, resume=None, model=self._live.model))
        self._live.start(self._live.open_session(plain))

    def _fork(self, rest: str) -> None:
        """Go on in a copy; the session itself stays as it is."""
        from dragoman.tui.session_picker import open_session

        store = self._live.store
        found = store.find(self._live.agent.session_id, self._live.setup.workspace)
        open_session(self._live, session_id_of(store.fork(found.path)))

    def _undo(self, rest: str) -> None:
        paths = self._live.agent.undo()
        if not paths:
            self._say(say("conversation.nothing_undone"))
        for path in paths:
            self._say(say("undo_restored", path=path))

    def _import(self, rest: str) -> None:
        from dragoman.tui.session_picker import import_and_open

        if not rest:
            self._say(say("conversation.import_usage"), "yellow")
            return
        import_and_open(self._live, os.path.join(self._live.setup.workspace, os.path.expanduser(rest)))

    def _export(self, rest: str) -> None:
        from dragoman.cli.session_files import export_text

        agent, setup = self._live.agent, self._live.setup
        name = rest or f"{agent.session_id}.md"
        form = {".html": "html", ".json": "json"}.get(os.path.splitext(name)[1].lower(), "markdown")
        path = os.path.join(setup.workspace, os.path.expanduser(name))
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(export_text(agent.history.entries, form, agent.blobs))
        except OSError as error:
            raise InputError(say("conversation.not_exported", path=path, reason=error.strerror or error)) from error
        self._say(say("conversation.exported", path=path))

    def _copy(self, rest: str) -> None:
        """Through the terminal (OSC 52): that works over a network too."""
        text = self._live.last_answer
        if not text:
            self._say(say("conversation.nothing_to_copy"), "yellow")
            return
        self._live.canvas.terminal.write(f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07")
        self._say(say("conversation.copied", count=len(text)))

    def _keys(self, rest: str) -> None:
        self._live.screen.page(say("conversation.keys_page"))

    def _theme(self, rest: str) -> None:
        """For this conversation; the configuration has it for good."""
        names = ("auto", *(name for name in NAMES if name != "none"))
        if rest not in names:
            self._say(say("conversation.themes", now=self._live.canvas.theme.name, names=", ".join(names)))
            return
        self._live.canvas.theme = choose_theme(os.environ, rest)
        self._say(say("conversation.theme_is", name=self._live.canvas.theme.name))

    def _lang(self, rest: str) -> None:
        if rest not in LANGUAGES:
            self._say(say("conversation.languages", names=", ".join(LANGUAGES)))
            return
        choose_language(rest)
        self._say(say("conversation.language_is"))
