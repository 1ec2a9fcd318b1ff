"""Scripts for doubles: answers in order, read from and written as plain text (`script_text`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.testing import script_text, script_writing
from dragoman.testing.script_steps import Say, ScriptedAnswer, ScriptForm
from dragoman.values.errors import InputError
from dragoman.words import say


class Script(ScriptForm, frozen=True, omit_defaults=True):
    """A script, and its plain-text form."""

    @classmethod
    def parse(cls, text: str) -> Script:
        """Read the plain-text form. InputError names the line, what is wrong with it and what would be right."""
        form = script_text.parse(text)
        return cls(form.answers, form.at_end, form.end_text)

    def render(self) -> str:
        """Write the plain-text form: `Script.parse(script.render()) == script`."""
        return script_writing.render(self)

    @classmethod
    def load(cls, path: str | Path) -> Script:
        """Read the plain-text form from a file."""
        try:
            return cls.parse(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(say("testing.script_unreadable", path=path, reason=error.strerror or error)) from error
        except UnicodeDecodeError as error:
            raise InputError(say("testing.script_not_utf8", path=path)) from error
        except InputError as error:
            raise InputError(say("testing.script_in_file", path=path, problem=error)) from error


Chooser = Callable[[Any], ScriptedAnswer]
"""Chooses an answer for a request: a `Request` in the process, a `ModelRequest` in the server."""
Source = Script | Chooser | ScriptedAnswer | str | Sequence[ScriptedAnswer]
"""What can drive a test double: a script, its plain-text form, answers in order, or a function."""


class Playback:
    """Hands out the answers of a script, one per request."""

    def __init__(self, source: Source) -> None:
        self._choose: Chooser | None = None
        self.script = Script()
        match source:
            case Script():
                self.script = source
            case str():
                self.script = Script.parse(source)
            case ScriptedAnswer():
                self.script = Script((source,), at_end="repeat")
            case Sequence():
                self.script = Script(tuple(source))
            case _:
                self._choose = source
        self._waiting = _repeat_answers(self.script)
        self.played = 0
        """Number of answers handed out."""

    def next(self, request: Any) -> ScriptedAnswer:
        """The answer to this request. Raises InputError if the script has ended with `at_end="raise"`."""
        chosen = self._choose(request) if self._choose else next(self._waiting, None) or self._after_the_end()
        self.played += 1
        return chosen

    def _after_the_end(self) -> ScriptedAnswer:
        script = self.script
        if script.at_end == "raise":
            raise InputError(say("testing.script_ended", count=self.played))
        if script.at_end == "repeat" and script.answers:
            return script.answers[-1]
        return ScriptedAnswer((Say(script.end_text),))


def _repeat_answers(script: Script) -> Iterator[ScriptedAnswer]:
    for each in script.answers:
        for _ in range(each.times):
            yield each


def pieces(text: str, piece_chars: int) -> Iterator[str]:
    """Split a text into deltas. An empty text is one empty delta."""
    if piece_chars <= 0 or not text:
        yield text
        return
    for start in range(0, len(text), piece_chars):
        yield text[start : start + piece_chars]
