"""Parses the command line into Options. A table and a small loop, because importing argparse takes longer than building our first request.

Whatever follows `-p` is the prompt, even if it looks like an option; `--` ends the options.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from msgspec.structs import replace

from dragoman.app.options import SEARCH_NOW, Command, Options
from dragoman.base.text import did_you_mean, either, printable_input
from dragoman.values.errors import InputError
from dragoman.words import say

MAX_TURNS_LIMIT = 1_000_000
_COUNTS = {"max_turns": MAX_TURNS_LIMIT, "at": 999_999_999, "to": 999_999_999, "port": 65_535, "memory_mb": 100_000_000}
_COUNTS |= dict.fromkeys(("workers", "attempts", "attempt", "epoch"), 60_000)
"""Options whose values are whole numbers from 1, and the largest value allowed."""


class Option(NamedTuple):
    """One row of the table. The last name is the long one."""

    key: str
    names: tuple[str, ...]
    takes: Literal["nothing", "value", "maybe", "many"] = "nothing"
    choices: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    """The commands that take it; empty: all. A command's actions may take fewer (actions.py)."""
    otherwise: str = ""
    """The value if an optional one is left out, or of an option that takes none."""


OPTIONS: tuple[Option, ...] = (
    Option("prompt", ("-p", "--prompt"), "value", commands=("run",)),
    Option("model", ("-m", "--model"), "value", commands=("run", "acp", "config", "doctor", "fleet")),
    Option("fallback", ("--fallback",), "many", commands=("run", "acp", "config", "doctor")),
    Option("output_format", ("--output-format",), "value", ("text", "json", "stream-json")),
    Option("max_turns", ("--max-turns",), "value", commands=("run", "acp", "config")),
    Option("approval", ("--approval",), "value", ("plan", "default", "auto-edit", "auto"), commands=("run", "acp", "config", "fleet")),
    Option(
        "sandbox", ("--sandbox",), "value", ("auto", "1", "2", "3", "off", "external"), commands=("run", "acp", "config", "doctor", "fleet")
    ),
    Option("allow", ("--allow",), "many", commands=("run", "acp", "config")),
    Option("deny", ("--deny",), "many", commands=("run", "acp", "config")),
    Option("include", ("--include",), "many", commands=("run", "acp")),
    Option("directory", ("-C", "--directory"), "value"),
    Option("config", ("--config",), "value"),
    Option("trust", ("--trust",), commands=("run", "acp", "config", "doctor", "hooks", "mcp", "agents", "skills", "plugins", "fleet")),
    Option("revoke", ("--revoke",), commands=("trust",)),
    Option("resume", ("-r", "--resume"), "maybe", commands=("run",)),
    Option("resume", ("-c", "--continue"), commands=("run",), otherwise="latest"),
    Option("worktree", ("--worktree",), "maybe", commands=("run",)),
    Option("search", ("--search",), "maybe", ("tool", "grounding", "off"), commands=("run",), otherwise=SEARCH_NOW),
    Option("text_tools", ("--text-tools",), commands=("run",)),
    Option("lang", ("--lang",), "value", ("en", "zh")),
    Option("no_color", ("--no-color",)),
    Option("debug", ("--debug",)),
    Option("offline", ("--offline",), commands=("doctor",)),
    Option("live", ("--live",), commands=("doctor",)),
    Option("record", ("--record",), "value", commands=("doctor",)),
    Option("all", ("--all",), commands=("sessions", "context", "approvals")),
    Option("at", ("--at",), "value", commands=("sessions", "context")),
    Option("to", ("--to",), "value", commands=("sessions",)),
    Option("form", ("--as",), "value", ("markdown", "html", "json", "record", "atif"), commands=("sessions",)),
    Option("form", ("--atif",), commands=("sessions", "fleet"), otherwise="atif"),
    Option("output", ("-o", "--output"), "value", commands=("sessions",)),
    Option("yes", ("--yes",), commands=("run", "sessions", "models", "doctor", "serve-local")),
    Option("source", ("--from",), "value", commands=("models",)),
    Option("force", ("--force",), commands=("sessions", "fleet")),
    Option("output_format", ("--json",), commands=("config", "context", "hooks", "mcp", "agents", "skills", "plugins"), otherwise="json"),
    Option("request", ("--request",), "maybe", commands=("context",)),
    Option("focus", ("--focus",), "value", commands=("context",)),
    Option("sign_in", ("--sign-in",), commands=("acp",)),
    Option("port", ("--port",), "value", commands=("serve-local", "view")),
    Option("talk", ("--talk",), commands=("view",)),
    Option("origin", ("--origin",), "value", commands=("view",)),
    Option("host", ("--host",), "value", commands=("view",)),
    Option("tls_cert", ("--tls-cert",), "value", commands=("view",)),
    Option("tls_key", ("--tls-key",), "value", commands=("view",)),
    Option("no_open", ("--no-open",), commands=("view",)),
    Option("env", ("--env",), "many", commands=("mcp",)),
    Option("header", ("--header",), "many", commands=("mcp",)),
    Option("transport", ("--transport",), "value", ("http", "sse"), commands=("mcp",)),
    Option("scope", ("--scope",), "value", ("user", "project"), commands=("mcp",)),
    Option("name", ("--name",), "value", commands=("fleet",)),
    Option("workers", ("--workers",), "value", commands=("fleet",)),
    Option("attempts", ("--attempts",), "value", commands=("fleet",)),
    Option("budget_usd", ("--budget-usd",), "value", commands=("fleet",)),
    Option("template", ("--template",), "value", commands=("fleet",)),
    Option("failed", ("--failed",), commands=("fleet",)),
    Option("on", ("--on",), "value", commands=("fleet",)),
    Option("cpus", ("--cpus",), "value", commands=("fleet",)),
    Option("memory_mb", ("--memory-mb",), "value", commands=("fleet",)),
    Option("output", ("--out",), "value", commands=("fleet",)),
    Option("attempt", ("--attempt",), "value", commands=("fleet",)),
    Option("epoch", ("--epoch",), "value", commands=("fleet",)),
    Option("scratch", ("--scratch",), "value", commands=("fleet",)),
    Option("hide", ("--hide",), "many", commands=("fleet",)),
    Option("take_over", ("--take-over",), commands=("fleet",)),
    Option("help", ("-h", "--help")),
    Option("version", ("-V", "--version")),
)
ELSEWHERE = {
    "--yolo": "--approval auto",
    "--full-auto": "--approval auto",
    "--dangerously-skip-permissions": "--approval auto",
    "--dangerously-bypass-approvals-and-sandbox": "--approval auto",
    "--approval-mode": "--approval",
    "--permission-mode": "--approval",
    "--ask-for-approval": "--approval",
    "--allowedTools": "--allow",
    "--allowed-tools": "--allow",
    "--disallowedTools": "--deny",
    "--add-dir": "--include",
    "--include-directories": "--include",
    "--print": "-p",
    "--cd": "-C",
}
"""Options of Claude Code, Codex and gemini-cli → ours."""
COMMANDS = tuple(command for command in get_args(Command) if command != "run")

_BY_NAME = {name: option for option in OPTIONS for name in option.names}


class BadArguments(InputError):
    """The command line is invalid. `options` is what could be parsed; its output format is used to report the error."""

    def __init__(self, message: str, options: Options) -> None:
        super().__init__(message)
        self.options = options


def parse(argv: Sequence[str]) -> Options:
    """Raises BadArguments with the first mistake."""
    parser = _Parser(list(argv))
    parser.read()
    try:
        options = Options(**parser.found)
    except TypeError as error:  # cannot happen while the table and the Struct agree, which a test checks
        raise BadArguments(str(error), Options()) from error
    if options.help or options.version:
        return options  # asking for help is never wrong
    options = _with_query(options)
    problem = parser.problem or _misused_option(options, parser.given)
    if problem:
        raise BadArguments(problem, options)
    return options


class _Parser:
    """Goes on after a mistake, so that later options such as --output-format are known; only the first mistake is reported."""

    def __init__(self, argv: list[str]) -> None:
        self._rest = argv[::-1]
        self.found: dict[str, Any] = {}
        self.given: dict[str, str] = {}
        """Option key → the name it was given by."""
        self.problem = ""

    def read(self) -> None:
        while self._rest:
            word = self._rest.pop()
            if word == "--":
                for each in reversed(self._rest):
                    self._add_word(each)
                return
            if word.startswith("-") and word != "-":
                self._add_option(word)
            else:
                self._add_word(word)

    def _add_word(self, word: str) -> None:
        if "command" in self.found:
            self.found["words"] = (*self.found.get("words", ()), word)
        elif word in COMMANDS:
            self.found["command"] = word
        elif " " in word.strip() or "question" in self.found or self._is_query:  # one word may be a misspelt command
            self.found["question"] = " ".join(filter(None, (self.found.get("question", ""), word)))
        else:
            self._add_problem(say("stray_word", word=printable_input(word), hint=did_you_mean(word, COMMANDS)))

    @property
    def _is_query(self) -> bool:
        """Whether a word by itself is what to search for."""
        return self.found.get("search") == SEARCH_NOW or self.found.get("prompt") == "--search"

    def _add_option(self, word: str) -> None:
        name, equals, attached = word.partition("=")
        option = _BY_NAME.get(name)
        if option is None or (equals and not name.startswith("--")):
            self._add_problem(say("unknown_option", name=printable_input(word if option else name), hint=_hint_on_option(name)))
            return
        if option.key == "prompt" and "prompt" in self.found:
            self._add_problem(say("prompt_twice"))
        self.given[option.key] = name
        if option.takes == "nothing":
            if equals:
                self._add_problem(say("takes_no_value", name=name))
            self.found[option.key] = option.otherwise or True
            return
        if equals:
            value = attached
        elif option.takes == "maybe":
            if not self._rest or self._rest[-1].startswith("-") or (option.choices and self._rest[-1] not in option.choices):
                self.found[option.key] = option.otherwise
                return
            value = self._rest.pop()
        elif self._rest and not (option.key in ("allow", "deny") and self._rest[-1] in _BY_NAME):
            value = self._rest.pop()
        else:  # no rule is called like an option: it was forgotten
            self._add_problem(say("needs_value", name=name))
            return
        self._set_value(option, name, value)

    def _set_value(self, option: Option, name: str, value: str) -> None:
        if not value and option.key != "prompt":
            self._add_problem(say("needs_value", name=name))
        elif option.choices and value not in option.choices:
            self._add_problem(say("not_a_choice", name=name, value=printable_input(value), choices=either(option.choices)))
        elif option.key in _COUNTS:
            self._set_count(option, name, value)
        elif option.key in ("budget_usd", "cpus"):
            self._set_amount(option, name, value)
        elif option.takes == "many":
            self.found[option.key] = (*self.found.get(option.key, ()), value)
        else:
            self.found[option.key] = value

    def _set_count(self, option: Option, name: str, value: str) -> None:
        most = _COUNTS[option.key]
        count = int(value) if value.isascii() and value.isdecimal() and len(value) < 10 else 0
        if not 1 <= count <= most:
            self._add_problem(say("not_a_count", name=name, value=printable_input(value), most=most))
        else:
            self.found[option.key] = count

    def _set_amount(self, option: Option, name: str, value: str) -> None:
        try:
            amount = float(value)
        except ValueError:
            amount = 0.0
        if not 0 < amount < float("inf"):
            self._add_problem(say("not_an_amount", name=name, value=printable_input(value)))
        else:
            self.found[option.key] = amount

    def _add_problem(self, problem: str) -> None:
        self.problem = self.problem or problem


def _with_query(options: Options) -> Options:
    """With `--search`, what stands beside it is what to search for. `-p --search QUERY` too: a prompt takes no further words, so nobody
    can have meant `--search` as one there."""
    if options.prompt == "--search" and options.question and not options.search:
        return replace(options, search=SEARCH_NOW, prompt=options.question, question="")
    if options.search == SEARCH_NOW and options.command == "run" and not options.prompt:
        return replace(options, prompt=options.question, question="")
    return options


def _misused_option(options: Options, given: dict[str, str]) -> str:
    if options.question and (options.command != "run" or options.prompt is not None):
        return say("stray_word", word=printable_input(options.question), hint="")
    for key, name in given.items():
        commands = _BY_NAME[name].commands
        if commands and options.command not in commands:
            if options.command == "run":
                return say("only_for_command", name=name, commands=either(commands))
            return say("not_for_command", name=name, command=options.command)
        if key == "output_format" and options.command != "run" and options.output_format == "stream-json":
            return say("no_stream_for_command", command=options.command)
    if options.command == "doctor" and (problem := _misused_live(options, given)):
        return problem
    if options.words and options.command not in (
        "models",
        "sessions",
        "context",
        "approvals",
        "trust",
        "hooks",
        "auth",
        "skills",
        "plugins",
        "mcp",
        "agents",
        "serve-local",
        "fleet",
        "view",
        "completions",
    ):
        return say("too_many_words", command=options.command, word=printable_input(options.words[0]))
    return ""


def _misused_live(options: Options, given: dict[str, str]) -> str:
    if options.live:
        return say("not_together", one="--live", other="--offline") if options.offline else ""
    without = next((name for key, name in given.items() if key in ("record", "yes")), "")
    return say("only_with", name=without, other="--live") if without else ""


def _hint_on_option(name: str) -> str:
    if name in _BY_NAME:  # `-p=x`
        return say("short_with_value", name=name)
    if name in ELSEWHERE:
        return say("did_you_mean", name=ELSEWHERE[name])
    if close := did_you_mean(name, _BY_NAME):
        return close
    return say("short_with_value", name=name[:2]) if name[:2] in _BY_NAME and not name.startswith("--") else say("see_help")
