"""Every command of a conversation and of the shell, a row each.

`/help` and its page in both languages, the menu behind a `/`, what may follow a command, the completion scripts of three shells and the
table in docs/use/commands.md are made of these rows. A slash command touches three files:

- its row here
- its function, `(talk: Talk, rest: str)` in a module of this package; or, where a front end has a way of its own, `do_NAME(self, rest)` of
  its handler (`slash.py: SlashCommands`, `tui/commands.py: LiveCommands`), which comes first
- its sentences, `commands.help_NAME` and perhaps a longer `commands.more_NAME`, in `words/en/commands.py` and `zh/commands.py`

`tests/conversation/test_commands.py` names the one that is missing. `python -m checks.commands` writes the table in the docs.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from dragoman.policy.judge import Mode
from dragoman.values.messages import Effort
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.conversation.subcommand import Printed, Subcommand
    from dragoman.conversation.talk import Talk

Place = Literal["plain", "live", "shell"]
"""Where a command is: the conversation line by line, the one with a live region, and `dragoman COMMAND`."""
Kind = Literal["", "files", "directories", "models", "sessions", "weights"]
"""What a shell completes in place of an operand. The last three are asked of the program."""

Boundary = Literal["write on", "write off", "port", "off", "on"]
"""What `/sandbox` changes."""

GROUPS = ("model", "context", "session", "files", "allowed", "brought", "program")
"""What commands are about, in the order in which they are listed. `commands.group_NAME` is the heading."""

TALKS = frozenset[Place](("plain", "live"))
EVERYWHERE = frozenset[Place](("plain", "live", "shell"))
LIVE = frozenset[Place](("live",))
SHELL = frozenset[Place](("shell",))


class Operand(msgspec.Struct, frozen=True):
    """A word behind a command."""

    name: str
    """As `/help` shows it; empty where the sentence names what may follow."""
    completes: Kind = ""
    behind: Literal["command", "actions", "shell"] = "command"
    """What it stands behind: the command itself; those actions of it that ask for it (`sessions show ID`); the command in a shell alone."""
    is_required: bool = False
    choices: tuple[str, ...] = ()
    """What it may be, where that is known: offered while one types."""
    about: Callable[[Any], str] | None = None
    """What a choice means, in a sentence."""


class Command(msgspec.Struct, frozen=True):
    """One row."""

    name: str
    group: str
    """One of GROUPS; empty where it is not listed, being another name of a command or one of the shell."""
    run: str = ""
    """`module:function`, the module under conversation/, loaded when it is called. Empty where every front end has a way of its own."""
    operands: tuple[Operand, ...] = ()
    where: frozenset[Place] = TALKS
    while_running: bool = False
    """Whether it may be called during a run; others wait for its end."""
    waits_with: tuple[str, ...] = ()
    """First words with which it waits all the same."""
    opens_list: bool = False
    """Whether, called alone, it opens a list in the live conversation: nothing of it stays on the screen."""
    aliases: tuple[str, ...] = ()
    """What other programs call it: whoever types that gets it, unless a command of the user's own has the name."""

    @property
    def slash(self) -> str:
        return f"/{self.name}"

    @property
    def usage(self) -> str:
        """Its name and what may follow it: `/model [NAME]`."""
        words = [each.name if each.is_required else f"[{each.name}]" for each in self.operands if each.name and each.behind == "command"]
        return " ".join((self.slash, *words))

    def waits(self, words: list[str]) -> bool:
        """Whether a line of these words waits for the end of a run."""
        return not self.while_running or bool(set(words[1:2]) & set(self.waits_with))


def _mode_words(mode: Mode) -> str:
    return say(f"mode_{mode}")


def _effort_words(effort: Effort) -> str:
    return say(f"conversation.effort_{effort}")


def _boundary_words(change: Boundary) -> str:
    return say(f"commands.sandbox_{change}")


_MODES = Operand("MODE", choices=get_args(Mode), about=_mode_words)
_EFFORTS = Operand("LEVEL", choices=get_args(Effort), about=_effort_words)
_BOUNDARY = Operand("", choices=get_args(Boundary), about=_boundary_words)
_SESSIONS = (Operand("ID", "sessions", "actions"), Operand("FILE", "files", "actions"))


COMMANDS = (
    Command("model", "model", operands=(Operand("NAME", "models"),), opens_list=True),
    Command("models", "model", operands=(Operand("NAME"), Operand("NAME", "weights", "actions")), where=EVERYWHERE),
    Command("effort", "model", "pages.settings_slash:effort", (_EFFORTS,), opens_list=True),
    Command("usage", "model", "pages.work_slash:usage", while_running=True),
    Command("stats", "model", "pages.work_slash:stats", while_running=True, aliases=("status", "session")),
    Command("context", "context", "pages.context_slash:context", (Operand("SESSION", "sessions", "shell"),), EVERYWHERE, opens_list=True),
    Command("search", "context", operands=(Operand("QUERY", is_required=True),)),
    Command("compress", "context", "pages.context_slash:compress", (Operand("FOCUS"),), aliases=("compact",)),
    Command("prune", "context"),
    Command("memory", "context", where=LIVE, opens_list=True),
    Command("new", "session", "pages.sessions_slash:new"),
    Command("clear", "session", "pages.work_slash:clear"),
    Command("resume", "session", operands=(Operand("ID", "sessions"),), opens_list=True),
    Command("rewind", "session", "pages.sessions_slash:rewind", (Operand("N"),), opens_list=True, aliases=("tree", "restore")),
    Command("retry", "session", "pages.work_slash:retry"),
    Command("fork", "session", "pages.sessions_slash:fork", (Operand("N"),), aliases=("branch", "clone")),
    Command("rename", "session", "pages.sessions_slash:rename", (Operand("TITLE", is_required=True),)),
    Command("copy", "session", operands=(Operand("N"),), where=LIVE),
    Command("export", "session", "pages.sessions_slash:export", (Operand("FILE", "files"),)),
    Command("import", "session", operands=(Operand("FILE", "files", is_required=True),), where=LIVE),
    Command("sessions", "session", "pages.sessions_slash:sessions", _SESSIONS, EVERYWHERE, opens_list=True),
    Command("diff", "files", where=LIVE, opens_list=True),
    Command("undo", "files", "pages.sessions_slash:undo", (Operand("--force"),)),
    Command("redo", "files", "pages.sessions_slash:redo", (Operand("--force"),)),
    Command("todo", "files", where=LIVE, while_running=True),
    Command("ps", "files", "pages.work_slash:ps", aliases=("tasks", "shells")),
    Command("stop", "files", "pages.work_slash:stop", (Operand("ID", is_required=True),)),
    Command("directory", "files", "pages.settings_slash:directory", (Operand("add PATH"),), while_running=True),
    Command("init", "files", where=LIVE),
    Command("approval", "allowed", "pages.settings_slash:approval", (_MODES,), while_running=True),
    Command(
        "approvals", "allowed", "pages.settings_slash:approvals", where=EVERYWHERE, while_running=True, aliases=("permissions", "policies")
    ),
    Command("sandbox", "allowed", "pages.sandbox_slash:sandbox", (_BOUNDARY,), while_running=True, waits_with=("off", "on")),
    Command("trust", "allowed", operands=(Operand("FOLDER", "directories", "shell"),), where=LIVE | SHELL),
    Command("tools", "brought", "pages.work_slash:tools", while_running=True),
    Command("mcp", "brought", "pages.mcp_slash:mcp", where=EVERYWHERE, while_running=True),
    Command("skills", "brought", "pages.work_slash:skills", where=EVERYWHERE, while_running=True),
    Command("hooks", "brought", "pages.work_slash:hooks", where=EVERYWHERE, while_running=True),
    Command("agents", "brought", "pages.work_slash:agents", where=EVERYWHERE, while_running=True),
    Command("help", "program", while_running=True),
    Command("keys", "program", where=LIVE, aliases=("hotkeys",)),
    Command("config", "program", "pages.settings_slash:config", where=EVERYWHERE, opens_list=True, aliases=("settings",)),
    Command("theme", "program", operands=(Operand("NAME", choices=("auto", "dark", "light", "16", "mono")),), where=LIVE),
    Command("lang", "program", operands=(Operand("LANGUAGE", choices=("en", "zh")),), where=LIVE),
    Command("bug", "program", "pages.bug_report:bug", while_running=True),
    Command("quit", "program", "pages.work_slash:leave", while_running=True),
    # Other names of commands that have one: they work, and are not listed.
    Command("exit", "", "pages.work_slash:leave", while_running=True),
    Command("cost", "", "pages.work_slash:usage", while_running=True),
    Command("add-dir", "", "pages.settings_slash:add_directory"),
    # Of the shell alone.
    Command("acp", "", where=SHELL),
    Command("auth", "", where=SHELL),
    Command("doctor", "", where=SHELL),
    Command("plugins", "", where=SHELL),
    Command("fleet", "", operands=(Operand("TASKS", "files", "shell"),), where=SHELL),
    Command("serve-local", "", operands=(Operand("MODEL", "files", "shell"),), where=SHELL),
    Command("view", "", operands=(Operand("SESSION", "sessions", "shell"),), where=SHELL),
    Command("completions", "", where=SHELL),
)


def commands_of(place: Place) -> list[Command]:
    """Its commands, those that are listed first, in the order of their groups."""
    return sorted((each for each in COMMANDS if place in each.where), key=lambda each: (*GROUPS, "").index(each.group))


def listed(place: Place) -> list[Command]:
    """As `/help` and the menu have them."""
    return [each for each in commands_of(place) if each.group]


def find_command(name: str, place: Place) -> Command | None:
    """By its name with the slash; or what another program calls it."""
    found = commands_of(place)
    return next((each for each in found if each.slash == name), None) or next((each for each in found if name[1:] in each.aliases), None)


def function_of(command: Command) -> Callable[[Talk, str], Printed | Subcommand | Coroutine[Any, Any, None] | str | None]:
    """What a row names, loaded now."""
    module, _, name = command.run.partition(":")
    return getattr(import_module(f"{__package__}.{module}"), name)
