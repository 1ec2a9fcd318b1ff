"""Every sentence a user may read, by key, so that it can be translated without touching the code that says it.

`say("key", name=value)` fills a sentence in. Its text is in a table of the language's folder (`en/` here), which is loaded when one of its
sentences is first said:

- `providers.no_key`: the library's, in the table `providers`
- `cancelled`: the program's, in one of the tables of `PROGRAM`

A sentence of the library names what a caller of the library can do. Where the program's user does something else (a flag, a command), the
table `REMEDIES` has the same key again: those are the words while the program speaks (`speak_for_program`).

A noun that is counted stands with its number in one place, in both its forms: `{count:entry|entries}` is `1 entry` or `2,000 entries`, and
`{count:answer is|answers are}` takes its verb along. `{count:/it was|they were}` is the word without the number.

`zh/` has the same tables, but for `testing`: a language that lacks a table or a sentence falls back to English. What only the model reads
is not here, nor what `--help` prints (conversation/help_texts.py, conversation/help_chinese.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType

PROGRAM = ("program", "program_terminal", "program_sessions", "program_commands", "program_context", "program_live", "program_hooks")
"""The tables of the program's own sentences, in the order in which they are searched."""

REMEDIES = "program_remedies"
"""Sentences of the library in the program's words."""

LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The first that is set decides, as for other programs."""

ALWAYS_LOADED = {
    "http.too_many_open": "too many files and connections are open in this process; run fewer agents at once, or allow more (ulimit -n)",
    "loop.other_placeholder": "(the result of {tool} was removed to save room: call it again if you need it)",
    "loop.placeholder": "(outdated output, removed to save room)",
    "providers.no_search": "{deployment} cannot search by itself over Chat Completions; use responses/, gemini/ or anthropic/",
    "values.provider_error": "{where}{message}{status}{request}",
}
"""English sentences for which no table is loaded: no file may be opened any more, or it is said and caught before a first request."""

_language = "en"
_is_program = False


class Sentence(str):
    """A sentence that was said: a str that remembers its key and values, so that it can be said again in another language."""

    key: str
    values: Mapping[str, object]
    """Read-only. Texts, numbers, and tuples of texts; a text may be a Sentence itself, as where an error tells why another one happened."""

    def __new__(cls, text: str, key: str = "", values: Mapping[str, object] | None = None) -> Sentence:
        sentence = super().__new__(cls, text)
        sentence.key = key
        sentence.values = MappingProxyType(dict(values or {}))
        return sentence

    def __reduce__(self) -> tuple[type[Sentence], tuple[str, str, dict[str, object]]]:
        return Sentence, (str(self), self.key, dict(self.values))


def choose_language(name: str) -> None:
    """From now on. An empty name changes nothing."""
    global _language
    _language = name or _language


def language_of(env: Mapping[str, str]) -> str:
    """The language that the environment asks for, if it is one of ours: DRAGOMAN_LANG, or the locale of Simplified Chinese; else empty."""
    if named := env.get("DRAGOMAN_LANG", "").strip():
        return named
    locale = next((value for name in LOCALE_VARIABLES if (value := env.get(name, ""))), "")
    return "zh" if locale.partition(".")[0].replace("-", "_") in ("zh", "zh_CN", "zh_SG", "zh_Hans", "zh_Hans_CN") else ""


def chosen_language() -> str:
    return _language


def speak_for_program(on: bool = True) -> None:
    """From now on remedies are those of somebody who uses the program, and not the library."""
    global _is_program
    _is_program = on


def say(key: str, /, **values: object) -> str:
    """The sentence in the chosen language, a Sentence.

    An error given as a value is its message, several texts are joined by semicolons, and other objects are turned into text.
    """
    return _said(key, {name: _plain(value) for name, value in values.items()}, _language)


def in_language(text: str, language: str) -> str:
    """The same sentence in another language, and the sentences inside it. A text that is not a Sentence stays as it is."""
    if not isinstance(text, Sentence) or not text.key:
        return text
    return _said(text.key, _changed(text.values, lambda value: in_language(value, language)), language)


def change_values(text: str, change: Callable[[str], str]) -> str:
    """The same sentence with each of its text values changed, as where a secret is taken out. A plain text is changed as a whole."""
    if not isinstance(text, Sentence) or not text.key:
        return change(text)
    return _said(text.key, _changed(text.values, lambda value: change_values(value, change)), _language)


def lookup(key: str, language: str = "en") -> str | None:
    """The text of a key as its table has it, before values are filled in; or None."""
    if language == "en" and key in ALWAYS_LOADED:
        return ALWAYS_LOADED[key]
    table, dot, _ = key.partition(".")
    for name in (*((REMEDIES,) if _is_program else ()), table) if dot else PROGRAM:
        if (text := _table(language, name).get(key)) is not None:
            return text
    return None


def sentences(table: str) -> dict[str, str]:
    """A table of the library in the chosen language, before values are filled in, for a program that fills them in elsewhere. What the
    language lacks is in English."""
    return {**_table("en", table), **_table(_language, table)}


def _said(key: str, values: Mapping[str, object], language: str) -> Sentence:
    try:
        text = lookup(key, language) or lookup(key)
    except OSError as error:  # an error must be told even where its table cannot be read
        return Sentence(f"{key} {dict(values)} ({error})", key, values)
    if text is None:
        raise KeyError(key)
    filled = {name: _shown(value) for name, value in values.items()}
    return Sentence(text.format(**filled) if filled else text, key, values)


def _shown(value: object) -> object:
    if isinstance(value, tuple):
        return "; ".join(value)
    return Count(value) if type(value) is int else value


class Count(int):
    """A number that knows how it is said with what it counts."""

    def __format__(self, form: str) -> str:
        one, bar, many = form.removeprefix("/").partition("|")
        if not bar:
            return super().__format__(form)
        word = one if self == 1 else many
        return word if form.startswith("/") else f"{int(self):,} {word}"


def _plain(value: object) -> object:
    match value:
        case BaseException():
            return sentence_of(value)
        case str() | int() | float() | None:
            return value
        case tuple() | list():
            return tuple(each if isinstance(each, str) else str(each) for each in value)
        case _:
            return str(value)


def _changed(values: Mapping[str, object], change: Callable[[str], str]) -> dict[str, object]:
    """The values, with each text in them changed."""

    def each(value: object) -> object:
        if isinstance(value, str):
            return change(value)
        return tuple(map(each, value)) if isinstance(value, tuple) else value

    return {name: each(value) for name, value in values.items()}


def sentence_of(error: BaseException) -> str:
    """An error's message: the Sentence it was raised with where there is one, as `DragomanError.sentence` gives it."""
    sentence = getattr(error, "sentence", error.args[0] if len(error.args) == 1 else None)
    return sentence if isinstance(sentence, Sentence) else str(error)


@cache
def _table(language: str, name: str) -> Mapping[str, str]:
    try:
        return import_module(f"{__name__}.{language}.{name}").TEXTS
    except ModuleNotFoundError:
        if language == "en":
            raise
        return {}
