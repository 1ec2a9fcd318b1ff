"""The command line → Options. A table of options and a small loop: argparse takes longer to load than our first request to be made.

A value is data. Whatever follows `-p` is the prompt, though it may look like an option; `--` ends the options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from dragoman.app.options import Options
from dragoman.base.text import as_typed, closest, either
from dragoman.base.words import say
from dragoman.values.errors import InputError

MAX_TURNS_LIMIT = 1_000_000
_COUNTS = {"max_turns": MAX_TURNS_LIMIT, "at": 999_999_999, "to": 999_999_999, "port": 65_535}
"""Options that are numbers from 1, and their most."""


class Option(NamedTuple):
    """One row of the table. The first name is the one shown."""

    key: str
    names: tuple[str, ...]
    takes: Literal["nothing", "value", "maybe", "many"] = "nothing"
    choices: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The commands it is for; empty: all."""
    otherwise: str = ""
    """What a value that may be left out is then; what an option without one stands for."""


OPTIONS: tuple[Option, ...] = (
    Option("prompt", ("-p", "--prompt"), "value", commands=("run",)),
    Option("model", ("-m", "--model"), "value", commands=("run", "config", "doctor")),
    Option("output_format", ("--output-format",), "value", ("text", "json", "stream-json")),
    Option("max_turns", ("--max-turns",), "value", commands=("run", "config")),
    Option("approval", ("--approval",), "value", ("plan", "default", "auto-edit", "auto"), commands=("run", "config")),
    Option("include", ("--include",), "many", commands=("run",)),
    Option("directory", ("-C", "--directory"), "value"),
    Option("config", ("--config",), "value"),
    Option("trust", ("--trust",), commands=("run", "config", "doctor")),
    Option("yes", ("--yes",), commands=("run", "sessions", "models", "serve-local")),
    Option("source", ("--from",), "value", commands=("models",)),
    Option("resume", ("--resume",), "maybe", commands=("run",), otherwise="latest"),
    Option("text_tools", ("--text-tools",), commands=("run",)),
    Option("lang", ("--lang",), "value", ("en", "zh")),
    Option("no_color", ("--no-color",)),
    Option("debug", ("--debug",)),
    Option("offline", ("--offline",), commands=("doctor",)),
    Option("all", ("--all",), commands=("sessions", "context")),
    Option("at", ("--at",), "value", commands=("sessions", "context")),
    Option("to", ("--to",), "value", commands=("sessions",)),
    Option("form", ("--as",), "value", ("markdown", "html", "json", "record"), commands=("sessions",)),
    Option("output", ("-o", "--output"), "value", commands=("sessions",)),
    Option("force", ("--force",), commands=("sessions",)),
    Option("output_format", ("--json",), commands=("context",), otherwise="json"),
    Option("request", ("--request",), "maybe", commands=("context",)),
    Option("focus", ("--focus",), "value", commands=("context",)),
    Option("port", ("--port",), "value", commands=("serve-local",)),
    Option("help", ("-h", "--help")),
    Option("version", ("-V", "--version")),
)
COMMANDS = ("models", "config", "doctor", "sessions", "context", "serve-local")
PLANNED = ("auth", "replay", "completions")
"""Commands that will be; they are named so that nobody takes them for a typing error."""

_BY_NAME = {name: option for option in OPTIONS for name in option.names}


class BadArguments(InputError):
    """The command line cannot be used. `options` is what could be read of it: the output format counts even then."""

    def __init__(self, message: str, options: Options) -> None:
        super().__init__(message)
        self.options = options


def parse(argv: Sequence[str]) -> Options:
    """Raises BadArguments with the first thing that is wrong."""
    reading = _Reading(list(argv))
    reading.read()
    try:
        options = Options(**reading.found)
    except TypeError as error:  # cannot happen while the table and the Struct agree, which a test sees to
        raise BadArguments(str(error), Options()) from error
    if options.help or options.version:
        return options  # asking for help is never wrong
    problem = reading.problem or _wrong_together(options, reading.given)
    if problem:
        raise BadArguments(problem, options)
    return options


class _Reading:
    """Goes on after a mistake, so that what stands behind it is known too; the first mistake is told."""

    def __init__(self, argv: list[str]) -> None:
        self._rest = argv[::-1]
        self.found: dict[str, Any] = {}
        self.given: dict[str, str] = {}
        """Option keys → the name they were given by."""
        self.problem = ""

    def read(self) -> None:
        while self._rest:
            word = self._rest.pop()
            if word == "--":
                for each in reversed(self._rest):
                    self._word(each)
                return
            if word.startswith("-") and word != "-":
                self._option(word)
            else:
                self._word(word)

    def _word(self, word: str) -> None:
        if "command" in self.found:
            self.found["words"] = (*self.found.get("words", ()), word)
        elif word in COMMANDS:
            self.found["command"] = word
        elif word in PLANNED:
            self._wrong(say("not_yet_command", name=word))
        else:
            self._wrong(say("stray_word", word=as_typed(word), hint=_nearest(word, COMMANDS)))

    def _option(self, word: str) -> None:
        name, equals, attached = word.partition("=")
        option = _BY_NAME.get(name)
        if option is None or (equals and not name.startswith("--")):
            self._wrong(say("unknown_option", name=as_typed(name), hint=_nearest(name, _BY_NAME) or _apart(name)))
            return
        if option.key == "prompt" and "prompt" in self.found:
            self._wrong(say("prompt_twice"))
        self.given[option.key] = name
        if option.takes == "nothing":
            if equals:
                self._wrong(say("takes_no_value", name=name))
            self.found[option.key] = option.otherwise or True
            return
        if equals:
            value = attached
        elif option.takes == "maybe":
            if not self._rest or self._rest[-1].startswith("-"):
                self.found[option.key] = option.otherwise
                return
            value = self._rest.pop()
        elif self._rest:
            value = self._rest.pop()
        else:
            self._wrong(say("needs_value", name=name))
            return
        self._value(option, name, value)

    def _value(self, option: Option, name: str, value: str) -> None:
        if not value and option.key != "prompt":
            self._wrong(say("needs_value", name=name))
        elif option.choices and value not in option.choices:
            self._wrong(say("not_a_choice", name=name, value=as_typed(value), choices=either(option.choices)))
        elif option.key in _COUNTS:
            self._count(option, name, value)
        elif option.takes == "many":
            self.found[option.key] = (*self.found.get(option.key, ()), value)
        else:
            self.found[option.key] = value

    def _count(self, option: Option, name: str, value: str) -> None:
        most = _COUNTS[option.key]
        count = int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else 0
        if not 1 <= count <= most:
            self._wrong(say("not_a_count", name=name, value=as_typed(value), most=most))
        else:
            self.found[option.key] = count

    def _wrong(self, problem: str) -> None:
        self.problem = self.problem or problem


def _wrong_together(options: Options, given: dict[str, str]) -> str:
    for key, name in given.items():
        commands = _BY_NAME[name].commands
        if commands and options.command not in commands:
            if options.command == "run":
                return say("only_for_command", name=name, commands=either(commands))
            return say("not_for_command", name=name, command=options.command)
        if key == "output_format" and options.command != "run" and options.output_format == "stream-json":
            return say("no_stream_for_command", command=options.command)
    if options.words and options.command not in ("models", "sessions", "context", "serve-local"):
        return say("too_many_words", command=options.command, word=as_typed(options.words[0]))
    return ""


def _apart(name: str) -> str:
    if name[:2] in _BY_NAME and not name.startswith("--"):
        return say("short_with_value", name=name[:2])
    return say("see_help")


def _nearest(word: str, names: Any) -> str:
    close = closest(word, names)
    return say("did_you_mean", name=close[0]) if close else ""
