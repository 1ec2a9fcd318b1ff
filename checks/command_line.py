"""docs/reference/commands.md: every command of the shell, with its options. `python -m checks.marked "command line"` writes it.

Commands and options are those of the table by which the command line is parsed (app/arguments.py); the words are those of `--help`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from checks.marked import REFERENCE, Part, sentences, table
from dragoman.app.arguments import COMMANDS, OPTIONS, Option
from dragoman.conversation.help_texts import help_for

TITLES = {"run": "dragoman"}
GENERAL = tuple(option for option in OPTIONS if not option.commands)
"""What every command takes."""
EVERYWHERE = {
    "--output-format": "what is printed: `text` (default), `json`; without a command also `stream-json`",
    "--directory": "work in DIR; relative paths are relative to it",
    "--config": "use FILE instead of your `config.toml`",
    "--lang": "the program's language",
    "--no-color": "no colours; so does `NO_COLOR=1`",
    "--debug": "log to standard error; keys are left out",
    "--help": "what the command does, and its options",
    "--version": "the version",
}
ABOUT = {
    "run": "a conversation in the terminal, or one answer with `-p`",
    "acp": "serve an editor over the Agent Client Protocol",
    "models": "services, models and prices; download weights",
    "config": "every setting with its value, and where that comes from",
    "doctor": "check everything that a run needs",
    "sessions": "list, show, search, copy, undo, export and delete sessions",
    "context": "what the next request contains, and why",
    "approvals": "what you have allowed for good",
    "trust": "trust a folder",
    "hooks": "commands of yours at fixed points of a run",
    "auth": "keys of services",
    "mcp": "MCP servers",
    "agents": "subagents",
    "skills": "skills",
    "plugins": "plugins",
    "fleet": "many tasks",
    "serve-local": "serve a local model to other programs",
    "view": "sessions in the browser",
    "completions": "completion for your shell",
}
UNSAID = {
    "--deny": ("RULE", "refuse what fits; may be given several times"),
    "--atif": ("", "the same as `--as atif`"),
    "--json": ("", "the same as `--output-format json`"),
}
"""What help texts say of an option only beside another."""


@dataclass
class Help:
    """A help text, taken apart."""

    usage: list[str] = field(default_factory=list)
    prose: list[str] = field(default_factory=list)
    """Paragraphs."""
    options: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Name → what it takes, as the text names it, and what it does."""
    blocks: list[str] = field(default_factory=list)
    """What stands behind the options, as it is."""


def made() -> str:
    return "\n\n".join([_index(), _general(), *map(section, ("run", *COMMANDS))])


def _index() -> str:
    return table(("command", "what it does"), [(f"[`{_title(each)}`](#{_anchor(each)})", ABOUT[each]) for each in ("run", *COMMANDS)])


def _general() -> str:
    rows = [(_names(option, _taken(option)), _choices(option), EVERYWHERE[option.names[-1]]) for option in GENERAL]
    return f"## Options of every command\n\n{table(('option', 'values', ''), rows)}"


def section(command: str) -> str:
    read = taken_apart(help_for(command))
    rows = [_row(option, read.options) for option in options_of(command)]
    paragraphs = ["\n".join(sentences(escaped(each))) for each in read.prose]
    usage = "```text\n" + "\n".join(read.usage) + "\n```"
    parts = [f"## {_title(command)}", usage, *paragraphs, table(("option", "values", ""), rows) if rows else ""]
    blocks = [each for each in read.blocks if not each.startswith("exit codes\n")]  # errors.md has them
    return "\n\n".join(filter(None, (*parts, *(f"```text\n{each}\n```" for each in blocks))))


def options_of(command: str) -> list[Option]:
    """Its own, and of those of every command the two that often mean something of their own."""
    texts = taken_apart(help_for(command)).options
    special = [option for option in GENERAL if option.key in ("directory", "output_format") and texts.get(option.names[-1], ("", ""))[1]]
    return [option for option in OPTIONS if command in option.commands] + special


def _row(option: Option, texts: dict[str, tuple[str, str]]) -> tuple[str, str, str]:
    takes, about = texts.get(option.names[-1]) or UNSAID[option.names[-1]]
    return _names(option, takes), _choices(option), about


def taken_apart(text: str) -> Help:
    found = Help()
    for paragraph in text.strip("\n").split("\n\n"):
        lines = paragraph.split("\n")
        if paragraph.startswith("usage: "):
            found.usage = [line.removeprefix("usage: ").removeprefix("       ") for line in lines]
        elif re.match(r" +-", paragraph):
            found.options |= _options(lines)
        elif found.options:
            found.blocks.append(paragraph)
        else:
            found.prose.append(" ".join(line.strip() for line in lines))
    return found


def _options(lines: list[str]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    named = ""
    about: list[str] = []
    for line in [*lines, "  -"]:
        if re.match(r" {2,6}-", line):
            if about or not named.rstrip().endswith(","):
                found |= _shared(named, about)
                named, about = "", []
            names, _, text = line.strip().partition("  ")
            named = f"{named} {names}".strip()
            about += [text.strip()] if text.strip() else []
        else:
            about.append(line.strip())
    return found


def _shared(named: str, about: list[str]) -> dict[str, tuple[str, str]]:
    """Several options may share a row."""
    found: dict[str, tuple[str, str]] = {}
    for each in filter(None, named.split(", ")):
        name, _, takes = each.strip(" ,").partition(" ")
        if name.startswith("--") and name != "--":
            found[name] = (takes, _cell(about))
    return found


def _cell(about: list[str]) -> str:
    said = ""
    for line in about:
        value, gap, meaning = line.partition("  ")
        piece = f"`{value}`: {meaning.strip()}" if gap and " " not in value else " ".join(line.split())
        joint = "" if not said else " " if said.endswith((".", ":", ";")) else ". " if piece[0].isupper() else "; " if gap else " "
        said += joint + piece
    return escaped(said)


def escaped(text: str) -> str:
    """As Markdown: options and names as code, pages as links."""
    as_code = re.sub(r"(?<![\w`\"-])(--[a-z][a-z-]+|[A-Z]+_[A-Z_]+|[a-z]+_[a-z_]+)(?![\w`])", r"`\1`", text)
    linked = re.sub(r"docs/([a-z]+/([a-z-]+)\.md)", r"[\2](../\1)", as_code)
    linked = linked.replace("(../reference/", "(")
    return re.sub(r"([*{}<>|])", lambda sign: {"|": "&#124;", "<": "&lt;", ">": "&gt;"}.get(sign[1], f"\\{sign[1]}"), linked)


def _names(option: Option, takes: str) -> str:
    long = " ".join(filter(None, (option.names[-1], "" if "|" in takes else takes)))
    return ", ".join(f"`{name}`" for name in (*option.names[:-1], long))


def _taken(option: Option) -> str:
    return taken_apart(help_for("run")).options.get(option.names[-1], ("", ""))[0]


def _choices(option: Option) -> str:
    return " ".join(f"`{each}`" for each in option.choices)


def _title(command: str) -> str:
    return TITLES.get(command, f"dragoman {command}")


def _anchor(command: str) -> str:
    return _title(command).replace(" ", "-")


PARTS = (Part(REFERENCE / "commands.md", "command line", made),)
