"""What keys do in a conversation: they go to the list that is open, to the question, to the composer, or to one of the actions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from dragoman.policy.judge import Mode
from dragoman.tui.asking import LiveDialog
from dragoman.tui.bindings import AT_WORK
from dragoman.tui.keys import Key, Paste
from dragoman.tui.listening import Listening
from dragoman.tui.prompt import PromptInput
from dragoman.tui.talk import LiveTalk
from dragoman.tui.turns import Turns
from dragoman.tui.vim import VimKeys
from dragoman.tui.work_keys import WorkKeys
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.agent import Agent

EXIT_INTERRUPTED = 130
AGAIN_S = 2.0
"""Within this time a second Ctrl-C leaves, and a second Esc goes back."""
_BESIDE_A_QUESTION = frozenset(("open", "suspend", "redraw"))
"""Actions that answer nothing: they work while a question is open, too."""
_MODES: tuple[Mode, ...] = ("default", "auto-edit", "auto", "plan")
"""The order in which Shift-Tab goes through them; auto only where commands run inside a boundary."""
_COMMANDS = {"keys": "/keys", "models": "/model", "sessions": "/resume", "context": "/context", "back": "/rewind"}


class Acting(LiveTalk, Protocol):
    """What actions need of the conversation."""

    def send(self, *, queued: bool) -> None: ...

    def run_command(self, text: str) -> bool: ...

    def open_folded(self) -> None: ...

    def edit_prompt(self) -> None: ...

    def paste_image(self) -> None: ...

    def give_terminal_back(self) -> None: ...


class KeyActions:
    """`press` gets every key and paste of the user's."""

    def __init__(
        self,
        conversation: Acting,
        prompt: PromptInput,
        dialog: LiveDialog,
        turns: Turns,
        listening: Callable[[], Listening],
        table: dict[str, str],
        work: WorkKeys,
        vim: VimKeys | None = None,
    ) -> None:
        self._conversation = conversation
        self._canvas = conversation.canvas
        self._prompt = prompt
        self._dialog = dialog
        self._turns = turns
        self._listening = listening
        self._table = table
        self._work = work
        self._vim = vim
        self._interrupted_s = self._escaped_s = 0.0
        self._is_finding_out = self._waits_for_auto = False
        """Whether commands run inside a boundary; and whether Shift-Tab came to auto meanwhile."""
        self.pressed_s = float("-inf")
        """When the last key came."""
        self.hint = ""
        """Shown in place of the status line until the next key."""

    def press(self, event: Key | Paste) -> None:
        self.pressed_s = time.monotonic()
        self.hint = ""
        if self._canvas.overlay is not None:
            self._press_in_overlay(event)
        elif isinstance(event, Key) and self._dialog.is_open and self._table.get(event.name) in _BESIDE_A_QUESTION:
            self._dialog.put_off()
            self._act(self._table[event.name])
        elif self._dialog.is_open:
            self._dialog.press(event)
        elif isinstance(event, Paste):
            self._prompt.paste(event)
        else:
            self._press_key(event)
        self._canvas.request(for_key=True)

    def write(self, event: Key | Paste) -> None:
        """Into the prompt while a question is open, or as it closes: nothing is sent, and no letter acts on what is running."""
        composer = self._prompt.composer
        if isinstance(event, Paste):
            self._prompt.paste(event)
        elif event.name == "enter":
            if not composer.is_empty:
                composer.newline()
        elif self._vim is None or not self._vim.press(event, self._canvas.columns - 3):
            composer.press(event.name, event.text)
        self._prompt.refresh()

    def _press_in_overlay(self, event: Key | Paste) -> None:
        overlay = self._canvas.overlay
        self._dialog.put_off()
        if overlay is not None and not overlay.press(event) and self._canvas.overlay is overlay:
            self._canvas.leave_overlay()

    def _press_key(self, key: Key) -> None:
        prompt, columns = self._prompt, self._canvas.columns - 3
        composer = prompt.composer
        if (prompt.menu is not None or prompt.is_searching) and prompt.press(key, columns):
            return
        if self._vim is not None and self._vim.press(key, columns):
            return prompt.refresh()
        if key.name == "up" and composer.is_empty and (text := self._turns.take_back()):
            return composer.set(text)
        if key.name == "alt-enter" and not self._turns.is_busy:
            return composer.newline()
        if self._work.press(key.name):
            return None
        action = self._table.get(key.name, "keys" if key.name == "?" and composer.is_empty else "")
        if not action or (action == "leave" and not composer.is_empty):
            prompt.press(key, columns)
        else:
            self._act(action)

    def _act(self, action: str) -> None:
        composer, is_busy = self._prompt.composer, self._turns.is_busy
        match action:
            case "send" if composer.text[: composer.caret].endswith("\\"):
                composer.replace(composer.caret - 1, composer.caret, "\n")
            case "send":
                if self._vim is not None:
                    self._vim.begin()
                self._conversation.send(queued=False)
            case "queue" if is_busy:
                self._conversation.send(queued=True)
            case "stop" if is_busy:
                self._turns.stop()
            case "stop":
                self._press_esc()
            case "interrupt":
                self._interrupt()
            case "leave" if is_busy:
                self.hint = say("conversation.still_running")
            case "leave":
                self._conversation.leave(0)
            case "suspend":
                self._listening().suspend()
            case "open":
                self._conversation.open_folded()
            case "editor":
                self._conversation.edit_prompt()
            case "image":
                self._conversation.paste_image()
            case "redraw":
                self._canvas.redraw()
            case "mode":
                self._next_mode()
            case _ if action in AT_WORK:
                self._work.act(AT_WORK[action])
            case _ if action in _COMMANDS and not is_busy:
                self._conversation.run_command(_COMMANDS[action])

    def _press_esc(self) -> None:
        """Twice with nothing written: back to an earlier prompt."""
        now = time.monotonic()
        is_second, self._escaped_s = now - self._escaped_s < AGAIN_S, now
        if self._prompt.composer.is_empty and is_second:
            self._conversation.run_command("/rewind")

    def _interrupt(self) -> None:
        """Ctrl-C: stops a run, and twice ends the program at once; else clears what is written; else leaves when it comes twice."""
        if self._turns.is_busy:
            if self._turns.is_stopping and not self._turns.runs_own_command:
                self._conversation.give_terminal_back()
                os._exit(EXIT_INTERRUPTED)
            return self._turns.stop()
        if not self._prompt.composer.is_empty:
            self._prompt.take()
            return
        now = time.monotonic()
        if now - self._interrupted_s < AGAIN_S:
            return self._conversation.leave(0)
        self._interrupted_s = now
        self.hint = say("again_leaves")

    def _next_mode(self) -> None:
        """Whether auto is among them is found out beside, once, from the first press on: only a press that comes to it waits."""
        agent = self._conversation.agent
        is_known = agent.approvals.known_sandbox is not None
        if not is_known and not self._is_finding_out:
            self._is_finding_out = True
            self._conversation.start_beside(self._find_out(agent))
        if is_known or agent.approvals.mode != "auto-edit":
            return self._take_mode(agent, has_boundary=agent.approvals.has_boundary)
        self._waits_for_auto = True
        return None

    async def _find_out(self, agent: Agent) -> None:
        from dragoman.app.sandbox_state import find_boundary

        try:
            has_boundary = await find_boundary(agent)
        finally:
            waits, self._is_finding_out, self._waits_for_auto = self._waits_for_auto, False, False
        if waits and agent is self._conversation.agent and agent.approvals.mode == "auto-edit":
            self._take_mode(agent, has_boundary=has_boundary)

    def _take_mode(self, agent: Agent, *, has_boundary: bool) -> None:
        modes = [mode for mode in _MODES if mode != "auto" or has_boundary]
        before = agent.approvals.mode
        agent.approvals.mode = modes[(modes.index(before) + 1) % len(modes)] if before in modes else "default"
        self.hint = say(f"mode_{agent.approvals.mode}")
