"""The first frame: the composer stands there before anything else is loaded, and what is typed meanwhile is shown and kept.

`show` is called by the entry point, which has loaded almost nothing yet, and from then on a thread reads the keys, until the conversation
takes them over (`hand_over`) or something else needs the terminal (`take_back`). It looks at the arguments without parsing them: where a
conversation on this terminal is not certain, nothing is shown.
"""

from __future__ import annotations

import _thread
import os
import select
import signal
from collections.abc import Sequence

from dragoman.base.found_files import read_found
from dragoman.base.places import find_places
from dragoman.tui.composer import Composer, may_name_media
from dragoman.tui.keys import Key, KeyReader, Paste
from dragoman.tui.layout import lay_out
from dragoman.tui.line import line
from dragoman.tui.live import LiveRegion, does_reflow, has_synchronised_updates
from dragoman.tui.terminal import HAS_RAW_MODE, Terminal
from dragoman.tui.theme import Theme, choose_theme
from dragoman.words import choose_language, language_of, say

_ALONE = ("--trust", "--yes", "--text-tools", "-r", "--resume", "-c", "--continue", "--no-color")
_WITH_VALUE = ("-m", "--model", "--fallback", "--approval", "--max-turns", "--include", "--config", "-C", "--directory", "--lang")

shown: FirstFrame | None = None
taken: FirstFrame | None = None
"""The frame that was removed: what was typed in it is not lost."""


class FirstFrame:
    """The terminal with an empty conversation in it."""

    def __init__(self, environment: dict[str, str], *, color: bool) -> None:
        self.terminal = Terminal(synchronised=has_synchronised_updates(environment))
        self.live = LiveRegion(reflows=does_reflow(environment))
        self.theme: Theme = choose_theme(environment) if color else Theme("mono")
        self.composer = Composer()
        self.reader = KeyReader()
        self.waiting: list[Key | Paste] = []
        """Keys that only the conversation can answer, in order: from the first of them on, everything waits."""
        self._stopping = (-1, -1)
        self._is_stopped = _thread.allocate_lock()
        self.size = self.terminal.size
        """For which the last frame was drawn."""

    def open(self) -> None:
        self.terminal.open()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda number, frame: self.leave(128 + number))
        self.draw()
        self.listen()

    def listen(self) -> None:
        """Read keys from now on, in a thread."""
        self._stopping = os.pipe()
        self._is_stopped = _thread.allocate_lock()
        self._is_stopped.acquire()
        _thread.start_new_thread(self._read_keys, ())

    def stop(self) -> None:
        """No key is read any more; what was typed is in the composer and in `waiting`."""
        if self._stopping[1] < 0:
            return
        os.write(self._stopping[1], b".")
        self._is_stopped.acquire()
        for end in self._stopping:
            os.close(end)
        self._stopping = (-1, -1)

    def leave(self, code: int) -> None:
        self.terminal.write(self.live.erase())
        self.terminal.close()
        os._exit(code)

    def draw(self) -> None:
        size = self.terminal.size
        if size != self.size:
            self.live.mark_moved()
            self.size = size
        frame = lay_out(
            self.composer,
            self.theme,
            size,
            status=line(say("conversation.starting"), "status"),
            placeholder=say("conversation.placeholder"),
        )
        self.terminal.write_frame(self.live.frame(frame, (), size))

    def keep(self, event: Key | Paste) -> None:
        """Take what is typed at a question into the prompt; nothing is sent by it."""
        if isinstance(event, Key) and event.name == "enter":
            event = Key("ctrl-j")
        if self.waiting or (isinstance(event, Paste) and may_name_media(event.text)):
            self.waiting.append(event)
        elif isinstance(event, Paste):
            self.composer.paste(event.text)
        elif event.name != "ctrl-j" or not self.composer.is_empty:
            self.composer.press(event.name, event.text)

    # --- in the thread

    def _read_keys(self) -> None:
        while True:
            ready, _, _ = select.select([0, self._stopping[0]], (), (), self.reader.waits_s or None)  # macOS cannot poll a terminal
            if self._stopping[0] in ready:
                break
            if not ready:
                self._take(self.reader.rest())
                continue
            try:
                data = os.read(0, 1 << 16)
            except OSError:
                data = b""
            if not data:
                self.terminal.gone = True
                break
            self._take(self.reader.feed(data))
        self._is_stopped.release()

    def _take(self, events: Sequence[Key | Paste]) -> None:
        for event in events:
            if self.waiting or (isinstance(event, Paste) and may_name_media(event.text)):
                self.waiting.append(event)
            elif isinstance(event, Paste):
                self.composer.paste(event.text)
            elif event.name in ("ctrl-c", "ctrl-d") and self.composer.is_empty:
                self.leave(130 if event.name == "ctrl-c" else 0)
            elif event.name == "ctrl-c":
                self.composer.set("")
            elif event.name in ("enter", "tab", "alt-enter", "ctrl-z") or not self.composer.press(event.name, event.text):
                self.waiting.append(event)
        if events:
            self.draw()


def show(arguments: Sequence[str]) -> None:
    """Show the first frame if these arguments begin a conversation on this terminal."""
    global shown
    environment = dict(os.environ)
    if not _is_conversation(arguments) or not _may_draw(environment):
        return
    choose_language(_language(arguments, environment))
    frame = FirstFrame(environment, color="--no-color" not in arguments)
    try:
        frame.open()
    except OSError:
        return
    shown = frame


def hand_over() -> FirstFrame | None:
    """The frame for the conversation, which reads the keys from now on. None if none was shown."""
    global shown
    frame, shown = shown, None
    if frame is not None:
        frame.stop()
    return frame


def take_back() -> None:
    """Remove the frame and restore the terminal: for an error, or a question before the conversation."""
    global taken
    frame = hand_over()
    if frame is not None:
        taken = frame
        frame.terminal.write(frame.live.erase())
        frame.terminal.close()


def can_draw(environment: dict[str, str]) -> bool:
    """Whether this terminal can show the conversation with a live region."""
    return HAS_RAW_MODE and environment.get("TERM", "") not in ("", "dumb") and os.isatty(0) and os.isatty(1)


def _may_draw(environment: dict[str, str]) -> bool:
    try:
        return can_draw(environment) and environment.get("DRAGOMAN_UI", "") != "plain" and not _may_be_plain(environment)
    except OSError:
        return False


def _is_conversation(arguments: Sequence[str]) -> bool:
    """Whether there are only options of a conversation, and perhaps a question."""
    before = ""
    for word in arguments:
        if before in _WITH_VALUE or (before in ("-r", "--resume") and not word.startswith("-")):
            before = ""
            continue
        before = word
        if word.partition("=")[0] not in (*_ALONE, *_WITH_VALUE) and (word.startswith("-") or " " not in word):
            return False
    return before not in _WITH_VALUE


def _may_be_plain(environment: dict[str, str]) -> bool:
    """Whether a configuration may ask for the plain conversation: then it is read first. Only looked at for the word."""
    for path in (find_places(environment).config_file, os.path.join(".dragoman", "config.toml")):
        try:
            if b"plain" in read_found(path, 1_000_000, cut=True):
                return True
        except OSError:
            continue
    return False


def _language(arguments: Sequence[str], environment: dict[str, str]) -> str:
    named = ""
    for number, word in enumerate(arguments):
        if word == "--lang":
            named = "".join(arguments[number + 1 : number + 2])
        elif word.startswith("--lang="):
            named = word.partition("=")[2]
    named = named or language_of(environment)
    return named if named in ("en", "zh") else ""
