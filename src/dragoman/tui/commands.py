"""Commands that need a live region or another session, beside those that both kinds of conversation have (conversation/slash.py)."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING

from dragoman.base.text import one_line
from dragoman.conversation.command_pages import help_groups
from dragoman.conversation.slash import SlashCommands
from dragoman.tui.calls import Folded
from dragoman.tui.overlay import Viewer
from dragoman.tui.theme import NAMES, choose_theme
from dragoman.values.errors import DragomanError
from dragoman.words import choose_language, say

if TYPE_CHECKING:
    from dragoman.conversation.subcommand import Printed
    from dragoman.tui.talk import LiveTalk

LANGUAGES = ("en", "zh")
SHORT_LINES = 12


class LiveCommands(SlashCommands):
    """The slash commands of the live conversation."""

    place = "live"

    def __init__(self, conversation: LiveTalk) -> None:
        super().__init__(conversation)
        self._live = conversation

    def run(self, line: str) -> None:
        try:
            super().run(line)
        except DragomanError as error:
            self._say(say("run_failed", message=error), "red")

    def do_help(self, rest: str) -> None:
        screen = self._live.screen
        for heading, rows in help_groups(self.place):
            screen.line(heading, "bold")
            for command, about in rows:
                screen.line(f"  {command.slash:12} {about}")
        self._list_file_commands()
        screen.line("")
        self.do_keys(rest)

    def _show_found(self, text: str) -> None:
        """The answer is Markdown, as a model's; its sources stay one in a line."""
        from dragoman.tui.markdown import render

        answer, heading, sources = text.rpartition("\n\nSources:\n")
        self._live.canvas.commit(render(answer or sources, self._live.screen.columns))
        if heading:
            self._live.screen.page(f"\nSources:\n{sources}")

    def do_clear(self, rest: str) -> None:
        self._call_shared("clear", rest)
        self._live.note_context()

    def do_sandbox(self, rest: str) -> None:
        """Beside a run too: a server that it has started may be opened meanwhile."""
        from dragoman.conversation.pages.sandbox_slash import sandbox

        self._live.start_beside(sandbox(self._live, rest))

    # --- subagents

    def do_agents(self, rest: str) -> None:
        """List the subagents and those at work; `stop NUMBER` ends one that is at work."""
        if rest:
            return self._stop_agent(rest)
        self._call_shared("agents", rest)
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

    # --- lists to pick from

    def do_model(self, rest: str) -> None:
        if rest:
            return self._live.change_model(rest)
        from dragoman.tui.pickers import pick_model

        pick_model(self._live)

    def do_resume(self, rest: str) -> None:
        if rest:
            return super().do_resume(rest)
        from dragoman.tui.session_picker import pick_session

        pick_session(self._live)

    def do_rename(self, rest: str) -> None:
        self._call_shared("rename", rest)
        self._live.show_title()

    def do_effort(self, rest: str) -> None:
        if rest:
            return self._call_shared("effort", rest)
        from dragoman.tui.settings_commands import choose_effort

        choose_effort(self._live, self.do_effort)

    def do_rewind(self, rest: str) -> None:
        if rest:
            self._call_shared("rewind", rest)
            return self._live.note_context()
        from dragoman.tui.pickers import pick_prompt

        pick_prompt(self._live)

    def do_context(self, rest: str) -> None:
        if rest or not self._live.agent.history.view.messages:  # before the first prompt: what it will begin with
            self._call_shared("context", rest)
            return self._live.note_context()
        from dragoman.tui.context_list import show_context

        show_context(self._live)

    def do_prune(self, rest: str) -> None:
        self.do_context("prune")

    # --- what subcommands of the program do

    def do_sessions(self, rest: str) -> None:
        action, _, session_id = rest.partition(" ")
        if not rest or action == "resume":
            return self.do_resume(session_id.strip())
        self._call_shared("sessions", rest)
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

    def do_import(self, rest: str) -> None:
        from dragoman.tui.session_picker import import_and_open

        if not rest:
            self._say(say("conversation.import_usage"), "yellow")
            return
        import_and_open(self._live, os.path.join(self._live.setup.workspace, os.path.expanduser(rest)))

    def do_copy(self, rest: str) -> None:
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

    def do_diff(self, rest: str) -> None:
        self._live.show_diffs()

    def do_keys(self, rest: str) -> None:
        self._live.screen.page(say("conversation.keys_page"))

    # --- how things are set

    def do_init(self, rest: str) -> None:
        from dragoman.tui.settings_commands import INIT_PROMPT

        self._live.ask(INIT_PROMPT)

    def do_memory(self, rest: str) -> None:
        from dragoman.tui.settings_commands import show_memory

        show_memory(self._live)

    def do_todo(self, rest: str) -> None:
        from dragoman.tui.settings_commands import show_todo

        show_todo(self._live)

    def do_trust(self, rest: str) -> None:
        from dragoman.tui.settings_commands import show_trust

        show_trust(self._live, rest)

    def do_theme(self, rest: str) -> None:
        """For this conversation; the configuration has it for good."""
        names = ("auto", *(name for name in NAMES if name != "none"))
        if rest not in names:
            self._say(say("conversation.themes", now=self._live.canvas.theme.name, names=", ".join(names)))
            return
        self._live.canvas.theme = choose_theme(os.environ, rest)
        self._say(say("conversation.theme_is", name=self._live.canvas.theme.name))

    def do_lang(self, rest: str) -> None:
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
