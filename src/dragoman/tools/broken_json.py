"""Arguments that are not valid JSON: mended where only one reading is possible, and described to the model where not.

Loaded only when a model has written such arguments.
"""

from __future__ import annotations

import json
import re

from dragoman.base import jsontext

TRAILING_COMMA = "a comma too many left out"
PYTHON_WORDS = "Python's True, False and None read as JSON"
RAW_CONTROLS = "line breaks inside a string escaped"
MISSING_BRACKETS = "brackets added at the end"
SPARE_BRACKETS = "brackets too many left out at the end"
QUOTED_OBJECT = "an object written as a string read as the object"
SHOWN_BEFORE, SHOWN_AFTER = 80, 40
"""How much of the text around a mistake is quoted."""

_PIECES = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^"]+|"', re.DOTALL)
"""Whole strings, what stands between them, and the quotation mark of a string without an end."""
_COMMA = re.compile(r",(\s*[}\]])")
_PYTHON = re.compile(r"\b(?:True|False|None)\b")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_CONTROL = re.compile(r"[\x00-\x1f]")
_BRACKET = re.compile(r"[{}\[\]]")
_ENDED = re.compile(r'(?:["}\]]|\b(?:true|false|null))\Z')
"""The end of a value that cannot go on. A number might have had more digits, and behind a comma something was to follow."""
_CLOSERS = {"{": "}", "[": "]"}
_HINT = 'in its strings, write \\" for a quotation mark, \\\\ for a backslash and \\n for a line break'


def mend_arguments(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The object that was surely meant, as JSON text, with what was changed; None where that is not certain.

    Missing brackets are added only behind a complete value. Whoever calls this knows that the answer was not cut off: of an answer that
    was, nothing is completed.
    """
    text = text.strip()
    if jsontext.is_too_deep(text.encode("utf-8", "replace")):
        return None
    try:
        value = jsontext.decode(text)
    except jsontext.NotJSON:
        mending = _Mending()
        mended = mending.mend(text)
        return None if mended is None or jsontext.decode_object(mended) is None else (mended, tuple(mending.repairs))
    if isinstance(value, str) and jsontext.decode_object(value) is not None:
        return value, (QUOTED_OBJECT,)
    return None


def describe_fault(text: str) -> str:
    """What is wrong with a text that is not JSON, where, and what stands there: for the model."""
    text = text.strip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        what, at, line, column = error.msg, error.pos, error.lineno, error.colno
    except (ValueError, RecursionError) as error:
        return f"its arguments are not valid JSON ({error}). Send one JSON object"
    else:
        return "its arguments are not valid JSON. Send one JSON object"
    if at >= len(text) or what.startswith("Unterminated string"):
        end, what = text[-SHOWN_BEFORE:], what.removesuffix(" starting at")
        return (
            f"its arguments break off before the JSON object is complete ({what}). The {len(text):,} characters that arrived end in\n"
            f"{'…' if len(text) > len(end) else ''}{end}\n"
            "Nothing of it was done. Send the whole call again; if it was long, do it in smaller parts"
        )
    before, after = text[max(at - SHOWN_BEFORE, 0) : at], text[at : at + SHOWN_AFTER]
    around = f"{'…' if at > len(before) else ''}{before} <HERE> {after}{'…' if at + len(after) < len(text) else ''}"
    return f"its arguments are not valid JSON: {what}, line {line} column {column}:\n{around}\nSend one JSON object; {_HINT}"


class _Mending:
    """One pass over the text. `repairs` is what was changed, each once."""

    def __init__(self) -> None:
        self.repairs: dict[str, None] = {}
        self._open: list[str] = []

    def mend(self, text: str) -> str | None:
        pieces: list[str] = []
        for match in _PIECES.finditer(text):
            piece = match.group()
            if piece == '"':
                return None
            if not self._open and pieces:
                return None  # a string behind the object
            if piece.startswith('"'):
                pieces.append(self._string(piece))
                continue
            between = self._between(piece)
            if between is None:
                return None
            pieces.append(between)
        mended = "".join(pieces)
        if self._open:
            if not _ENDED.search(mended.rstrip()):
                return None
            self.repairs[MISSING_BRACKETS] = None
        return mended + "".join(_CLOSERS[bracket] for bracket in reversed(self._open))

    def _string(self, piece: str) -> str:
        if not _CONTROL.search(piece):
            return piece
        self.repairs[RAW_CONTROLS] = None
        return _CONTROL.sub(lambda match: json.dumps(match.group())[1:-1], piece)

    def _between(self, piece: str) -> str | None:
        """What stands between two strings, without what is wrong with it; None where brackets do not match, or the object has ended and
        something else follows."""
        for match in _BRACKET.finditer(piece):
            bracket = match.group()
            if bracket in _CLOSERS:
                self._open.append(bracket)
            elif not self._open or _CLOSERS[self._open.pop()] != bracket:
                return None
            if not self._open:
                rest = piece[match.end() :]
                if rest.strip("}] \t\r\n"):
                    return None
                if rest.strip():
                    self.repairs[SPARE_BRACKETS] = None
                return self._in_json(piece[: match.end()])
        return self._in_json(piece)

    def _in_json(self, piece: str) -> str:
        if _COMMA.search(piece):
            self.repairs[TRAILING_COMMA] = None
            piece = _COMMA.sub(r"\1", piece)
        if _PYTHON.search(piece):
            self.repairs[PYTHON_WORDS] = None
            piece = _PYTHON.sub(lambda match: _WORDS[match.group()], piece)
        return piece
