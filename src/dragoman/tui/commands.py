"""Commands that need a live region or another session, beside those that both kinds of conversation have (conversation/slash.py)."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from dragoman.base.text import one_line
from dragoman.base.words import choose_language, say
from dragoman.conversation.slash import SlashCommands
from dragoman.tui.calls import Folded
from dragoman.tui.overlay import Viewer
from dragoman.tui.theme import NAMES, choose_theme
from dragoman.values.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.conversation.subcommand import Printed
    from dragoman.tui.talk import LiveTalk

LANGUAGES = ("en", "zh")
SHORT_LINES = 12
UNLISTED = frozenset(("/exit", "/cost", "/add-dir"))
"""Other names of commands that have one: they work, and are not listed."""
GROUPS = {
    "model": ("/model", "/models", "/effort", "/usage", "/stats"),
    "context": ("/context", "/search", "/compress", "/prune", "/memory"),
    "session": ("/new", "/clear", "/resume", "/rewind", "/retry", "/fork", "/rename", "/copy", "/export", "/import", "/sessions"),
    "files": ("/diff", "/undo", "/todo", "/ps", "/stop", "/directory", "/init"),
    "allowed": ("/approval", "/approvals", "/sandbox", "/trust"),
    "brought": ("/tools", "/mcp", "/skills", "/hooks", "/agents"),
    "program": ("/help", "/keys", "/config", "/theme", "/lang", "/bug", "/quit"),
}
"""The order in which commands are listed, by what they are about."""
LISTED = tuple(dict.fromkeys(("/help", *(name for names in GROUPS.values() for name in names))))
"""The order in which they are offered while one types."""


class LiveCommands(SlashCommands):
    """The slash commands of the live conversation."""

    def __init__(self, conversation: LiveTalk) -> None:
        super().__init__(conversation)
        self._live = conversation
        own: dict[str, Callable[[str], None]] = {
            "/help": self._list_commands,
            "/model": self._pick_model,
            "/agents": self._live_agents,
            "/diff": lambda rest: self._live.show_diffs(),
            "/copy": self._copy,
            "/keys": self._keys,
            "/theme": self._theme,
            "/lang": self._lang,
            "/import": self._import,
            "/todo": lambda rest: self._settings().show_todo(self._live),
            "/memory": lambda rest: self._settings().show_memory(self._live),
            "/init": lambda rest: self._live.ask(self._settings().INIT_PROMPT),
            "/trust": lambda rest: self._settings().show_trust(self._live, rest),
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
        screen = self._live.screen
        for group, names in GROUPS.items():
            screen.line(say(f"conversation.group_{group}"), "bold")
            for name in names:
                screen.line(f"  {name:12} {say(f'conversation.help_{name[1:]}')}")
        self._list_file_commands()
        screen.line("")
        self._keys(rest)

    def _show_found(self, text: str) -> None:
        """The answer is Markdown, as a model's; its sources stay one in a line."""
        from dragoman.tui.markdown import render

        answer, heading, sources = text.rpartition("\n\nSources:\n")
        self._live.canvas.commit(render(answer or sources, self._live.screen.columns))
        if heading:
            self._live.screen.page(f"\nSources:\n{sources}")

    def _clear(self, rest: str) -> None:
        super()._clear(rest)
        self._live.note_context()

    def _sandbox(self, rest: str) -> None:
        """Beside a run too: a server that it has started may be opened meanwhile."""
        from dragoman.conversation.pages.sandbox_slash import run_sandbox_words

        self._live.start_beside(run_sandbox_words(self._live, rest))

    # --- subagents

    def _live_agents(self, rest: str) -> None:
        """List the subagents and those at work; `stop NUMBER` ends one that is at work."""
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
        if rest:
            return super()._resume(rest)
        from dragoman.tui.session_picker import pick_session

        pick_session(self._live)

    def _rename(self, rest: str) -> None:
        super()._rename(rest)
        self._live.show_title()

    def _effort(self, rest: str) -> None:
        if rest:
            return super()._effort(rest)
        self._settings().choose_effort(self._live, super()._effort)

    def _rewind(self, rest: str) -> None:
        if rest:
            super()._rewind(rest)
            return self._live.note_context()
        from dragoman.tui.pickers import pick_prompt

        pick_prompt(self._live)

    def _context(self, rest: str) -> None:
        if rest or not self._live.agent.history.view.messages:  # before the first prompt: what it will begin with
            super()._context(rest)
            return self._live.note_context()
        from dragoman.tui.context_list import show_context

        show_context(self._live)

    # --- what subcommands of the program do

    def _sessions(self, rest: str) -> None:
        action, _, session_id = rest.partition(" ")
        if not rest or action == "resume":
            return self._resume(session_id.strip())
        super()._sessions(rest)
        self._live.note_context()

    def _pull_model(self, rest: str) -> None:
        from dragoman.tui.pulling import start_pull

        self._try(lambda: start_pull(self._live, rest))

    def _show_printed(self, title: str, printed: Printed) -> None:
        """A few lines stay in the conversation; what is longer is read apart from it."""
        if printed.text.count("\n") <= SHORT_LINES:
            return super()._show_printed(title, printed)
        for notice in printed.notices:
            self._say(notice, "yellow")
        self._live.canvas.open(Viewer([Folded(title, printed.text.rstrip("\n"))]))

    # --- sessions and files

    def _import(self, rest: str) -> None:
        from dragoman.tui.session_picker import import_and_open

        if not rest:
            self._say(say("conversation.import_usage"), "yellow")
            return
        import_and_open(self._live, os.path.join(self._live.setup.workspace, os.path.expanduser(rest)))

    def _copy(self, rest: str) -> None:
        """Through the terminal (OSC 52), which works over a network too, and programs of the desktop. With a number, one code block of the
        answer."""
        text = self._live.last_answer
        if not text:
            self._say(say("conversation.nothing_to_copy"), "yellow")
            return
        if rest:
            blocks = _code_blocks(text)
            if not rest.isdecimal() or not 1 <= int(rest[:9]) <= len(blocks):
                return self._say(say("conversation.no_such_block", count=len(blocks)), "yellow")
            text = blocks[int(rest) - 1]
        from dragoman.tui.clipboard import copy_text

        copy_text(text, self._live.agent.directories)
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


def _code_blocks(text: str) -> list[str]:
    """The code between fences, in order. A fence is closed by one at least as long."""
    blocks: list[str] = []
    fence, lines = "", list[str]()
    for each in text.split("\n"):
        mark = each.strip()
        if fence:
            if mark.startswith(fence) and not mark.strip(fence[0]):
                blocks.append("\n".join(lines))
                fence = ""
            else:
                lines.append(each)
        elif mark.startswith(("```", "~~~")):
            fence = mark[: len(mark) - len(mark.lstrip(mark[0]))]
            lines.clear()
    return blocks
