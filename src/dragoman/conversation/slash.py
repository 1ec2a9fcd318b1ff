"""Slash commands of the conversation."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, get_args

import msgspec

from dragoman.base.text import did_you_mean, one_line
from dragoman.base.words import chosen_language, lookup, say
from dragoman.conversation.help_texts import help_for
from dragoman.conversation.spent_words import spent_words
from dragoman.conversation.talk import Talk
from dragoman.policy.judge import Mode
from dragoman.values.errors import DragomanError, InputError, SandboxError
from dragoman.values.messages import Effort, Thinking

if TYPE_CHECKING:
    from dragoman.app.slash_commands import Invocation
    from dragoman.conversation.subcommand import Printed

T = TypeVar("T")

NAMES_ELSEWHERE = {
    "/compact": "/compress", "/permissions": "/approvals", "/policies": "/approvals", "/status": "/stats", "/session": "/stats",
    "/branch": "/fork", "/clone": "/fork", "/tree": "/rewind", "/restore": "/rewind", "/tasks": "/ps", "/shells": "/ps",
    "/settings": "/config", "/hotkeys": "/keys",
}  # fmt: skip
"""What other programs call these commands: whoever types that gets it, unless a command of the user's own has the name."""


def begins_with_path(line: str) -> bool:
    """Whether the first word is an absolute path: it has a second slash, or something of that name is there. Or it is a prompt of an MCP
    server, which goes to the model too."""
    word = line.split(maxsplit=1)[0]
    return "/" in word[1:] or word.startswith("/mcp__") or os.path.lexists(word)


class SlashCommands:
    """`run` takes the whole line, with its slash. Nothing of it is sent to the model."""

    def __init__(self, conversation: Talk) -> None:
        self._conversation = conversation
        self._say = conversation.screen.message
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": self._help,
            "/model": self._model,
            "/retry": self._retry,
            "/approval": self._approval,
            "/approvals": self._approvals,
            "/sandbox": self._sandbox,
            "/directory": self._directory,
            "/clear": self._clear,
            "/tools": self._tools,
            "/skills": self._skills,
            "/hooks": self._hooks,
            "/usage": self._usage,
            "/stats": self._stats,
            "/context": self._context,
            "/compress": self._compress,
            "/search": self._search,
            "/prune": lambda rest: self._context("prune"),
            "/sessions": self._sessions,
            "/resume": self._resume,
            "/new": self._new,
            "/fork": self._fork,
            "/rename": self._rename,
            "/effort": self._effort,
            "/rewind": self._rewind,
            "/undo": self._undo,
            "/export": self._export,
            "/models": self._models,
            "/config": lambda rest: self._subcommand("config", rest),
            "/bug": self._bug,
            "/mcp": self._mcp,
            "/agents": self._agents,
            "/ps": self._ps,
            "/stop": self._stop,
            "/quit": self._quit,
            "/exit": self._quit,
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._commands)

    def knows(self, line: str) -> bool:
        return line.split(maxsplit=1)[0] in self._commands

    def find_in_files(self, line: str) -> Invocation | None:
        """A command in a file, or a skill. What is built in has its name for itself."""
        from dragoman.app.slash_commands import FileCommands

        commands = FileCommands(self._conversation.setup, self.names)
        for notice in commands.notices_about(line):
            self._say(notice, "yellow")
        return commands.find(line)

    def run(self, line: str) -> None:
        name, _, rest = line.strip().partition(" ")
        command = self._commands.get(name) or self._commands.get(NAMES_ELSEWHERE.get(name, ""))
        if command is None:
            self._show_unknown(name)
        else:
            command(rest.strip())

    def _show_unknown(self, name: str) -> None:
        self._say(say("unknown_command", name=name[:60], hint=did_you_mean(name, self._commands)), "yellow")

    def _help(self, rest: str) -> None:
        self._conversation.screen.page(help_for("terminal", chosen_language()).rstrip("\n"))
        self._list_file_commands()

    def _list_file_commands(self) -> None:
        from dragoman.conversation.pages.skills_command import file_command_lines

        for line in file_command_lines(self._conversation.setup, self.names):
            self._conversation.screen.line(line)

    def _model(self, rest: str) -> None:
        if not rest:
            self._say(say("model_is", model=self._conversation.model))
            return
        self._conversation.change_model(rest)

    def _retry(self, rest: str) -> None:
        if self._conversation.may_retry:
            self._conversation.ask(None)
        else:
            self._say(say("nothing_to_retry"), "yellow")

    def _approval(self, rest: str) -> None:
        approvals = self._conversation.agent.approvals
        mode = next((mode for mode in get_args(Mode) if mode == rest), None)
        if mode is not None:
            try:
                approvals.mode = mode
            except SandboxError as error:
                self._say(str(error), "yellow")
                return
        elif rest:
            self._say(say("no_such_mode", name=rest[:60], known=", ".join(get_args(Mode))), "yellow")
            return
        allowed = len(approvals.grants.keys)
        saved = say("approval_saved", count=allowed) if allowed else ""
        self._say(say("approval_is", mode=approvals.mode, meaning=say(f"mode_{approvals.mode}"), saved=saved))
        self._say(say("sandbox_is", words=approvals.sandbox))

    def _approvals(self, rest: str) -> None:
        """`list` and `--all` are about every folder, as in the shell; the rest about this one and this session."""
        from dragoman.conversation.pages.approvals_command import for_conversation, is_for_every_folder

        conversation = self._conversation
        if is_for_every_folder(conversation.setup, conversation.agent.approvals, rest.split()):
            return self._subcommand("approvals", rest)
        try:
            said = for_conversation(conversation.setup, conversation.agent.approvals, rest.split())
        except InputError as error:
            self._say(str(error), "yellow")
            return
        for line in said.splitlines():
            conversation.screen.line(line)

    def _sandbox(self, rest: str) -> None:
        from dragoman.conversation.pages.sandbox_slash import run_sandbox_words

        self._conversation.start(run_sandbox_words(self._conversation, rest))

    def _directory(self, rest: str) -> None:
        """`/directory`, `/directory add PATH`. A relative path is meant from the workspace, as everywhere in the program."""
        agent = self._conversation.agent
        action, _, path = rest.partition(" ")
        if not rest:
            for directory in agent.directories:
                self._conversation.screen.line(directory)
        elif action != "add" or not path.strip():
            self._say(say("directory_usage"), "yellow")
        else:
            self._add_directory(os.path.join(agent.workspace.root, os.path.expanduser(path.strip())))

    def _add_directory(self, path: str) -> None:
        agent = self._conversation.agent
        known = agent.directories
        try:
            real = agent.add_directory(path)
        except InputError as error:
            self._say(say("run_failed", message=error), "red")
            return
        self._say(say("directory_known" if real in known else "directory_added", path=real))

    def _clear(self, rest: str) -> None:
        agent = self._conversation.agent
        if not agent.history.view.messages:
            self._say(say("nothing_to_clear"))
            return
        last = agent.history.entries[-1].seq
        agent.clear()
        self._conversation.may_retry = False
        self._say(say("cleared", seq=last, id=agent.session_id))

    def _tools(self, rest: str) -> None:
        screen, specs = self._conversation.screen, self._conversation.agent.tools.specs
        width = max((len(spec.name) for spec in specs), default=0)
        for spec in specs:
            ours = f"tools.about_{spec.name}"
            summary = say(ours) if lookup(ours) is not None else one_line(spec.description).partition(". ")[0].rstrip(".")
            text = summary if spec.read_only else say("asking_tool", text=summary)
            screen.page(f"  {spec.name:{width}}  {text}")

    def _skills(self, rest: str) -> None:
        from dragoman.conversation.pages.skills_command import skill_lines

        for line in skill_lines(self._conversation.setup):
            self._conversation.screen.line(line)

    def _hooks(self, rest: str) -> None:
        from dragoman.conversation.pages.hooks_command import for_conversation

        said = self._try(lambda: for_conversation(self._conversation.setup, rest.split()))
        for line in (said or "").splitlines():
            self._conversation.screen.line(line)

    def _usage(self, rest: str) -> None:
        conversation = self._conversation
        self._say(
            say(
                "usage_so_far",
                runs=conversation.runs,
                spent=spent_words(conversation.usage, conversation.cost_usd, estimated=not conversation.cost_is_whole),
            )
        )

    # --- what subcommands of the program do

    def _context(self, rest: str) -> None:
        from dragoman.conversation.pages.context_slash import run_context_words

        printed = self._try(lambda: run_context_words(self._conversation, rest, self._conversation.screen.columns))
        if printed is not None:
            self._show_printed(f"dragoman context {rest}".strip(), printed)

    def _compress(self, rest: str) -> None:
        from dragoman.conversation.pages.context_slash import compress

        self._conversation.start(compress(self._conversation, rest))

    def _search(self, rest: str) -> None:
        from dragoman.conversation.searching import search_in

        if not rest:
            return self._say(say("conversation.search_usage"), "yellow")
        self._conversation.start(search_in(self._conversation, rest, self._show_found))

    def _show_found(self, text: str) -> None:
        self._conversation.screen.page(text)

    def _subcommand(self, command: str, rest: str) -> None:
        from dragoman.conversation.subcommand import parse_words, run_subcommand

        talk = self._conversation
        printed = self._try(lambda: run_subcommand(parse_words(talk.setup, command, rest), talk.screen.columns))
        if printed is not None:
            self._show_printed(f"dragoman {command} {rest}".strip(), printed)

    def _sessions(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import run_session_words

        printed = self._try(lambda: run_session_words(self._conversation, rest, self._conversation.screen.columns))
        if printed is not None:
            self._show_printed(f"dragoman sessions {rest}".strip(), printed)

    def _resume(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import open_named

        if rest:
            return open_named(self._conversation, rest)
        self._sessions("list")
        self._say(say("conversation.resume_usage"), "dim")

    def _new(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import open_new

        open_new(self._conversation)

    def _fork(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import open_copy

        self._tell(lambda: open_copy(self._conversation, rest))

    def _rename(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import rename

        self._tell(lambda: rename(self._conversation, rest))

    def _effort(self, rest: str) -> None:
        """How much the model thinks, from the next answer on."""
        agent, known = self._conversation.agent, get_args(Effort)
        effort = next((each for each in known if each == rest), None)
        if effort is None:
            thinking = agent.settings.thinking
            now = thinking.effort if thinking is not None else "-"
            return self._say(say("conversation.efforts", now=now, known=", ".join(known)))
        agent.settings = msgspec.structs.replace(agent.settings, thinking=Thinking(effort))
        self._say(say("conversation.effort_is", effort=effort))

    def _rewind(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import entry_number, rewind

        self._tell(lambda: rewind(self._conversation, entry_number(rest)))

    def _undo(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import undo

        if rest not in ("", "--force"):
            return self._say(say("unknown_option", name=rest[:40], hint=""), "yellow")
        self._tell(lambda: undo(self._conversation, force=bool(rest)))

    def _export(self, rest: str) -> None:
        from dragoman.conversation.pages.sessions_slash import export

        self._tell(lambda: export(self._conversation, rest))

    def _models(self, rest: str) -> None:
        if rest.split()[:1] == ["pull"]:
            return self._pull_model(rest)
        self._subcommand("models", rest)

    def _pull_model(self, rest: str) -> None:
        """Line by line the program may ask for itself, and shows how far it has come."""
        from dragoman.conversation.pages.models import run_models
        from dragoman.conversation.subcommand import parse_words

        said = self._try(lambda: run_models(parse_words(self._conversation.setup, "models", rest)))
        if isinstance(said, str):
            self._conversation.screen.page(said.rstrip("\n"))

    def _tell(self, act: Callable[[], str]) -> None:
        for line in (self._try(act) or "").splitlines():
            self._say(line)

    def _try(self, act: Callable[[], T]) -> T | None:
        try:
            return act()
        except DragomanError as error:
            self._say(str(error), "yellow")
            return None

    def _show_printed(self, title: str, printed: Printed) -> None:
        for notice in printed.notices:
            self._say(notice, "yellow")
        if printed.text.strip():
            self._conversation.screen.page(printed.text.rstrip("\n"))

    # --- this session in numbers, and a report of a fault

    def _stats(self, rest: str) -> None:
        from dragoman.conversation.pages.session_stats import stats_text

        screen = self._conversation.screen
        screen.page(stats_text(self._conversation.agent, screen.columns).rstrip("\n"))

    def _bug(self, rest: str) -> None:
        from dragoman.conversation.pages.bug_report import report_lines

        for line in report_lines(self._conversation):
            self._conversation.screen.line(line)

    def _mcp(self, rest: str) -> None:
        from dragoman.conversation.pages.mcp_slash import run_slash

        conversation = self._conversation
        try:
            said = run_slash(conversation.setup, conversation.agent, rest.split())
        except InputError as error:
            self._say(str(error), "yellow")
            return
        for line in said:
            conversation.screen.line(line)

    def _agents(self, rest: str) -> None:
        from dragoman.conversation.pages.agents_command import for_conversation

        for line in for_conversation(self._conversation.agent):
            self._conversation.screen.line(line)

    def _ps(self, rest: str) -> None:
        commands = self._conversation.agent.background_commands
        if not commands:
            self._say(say("no_background_commands"))
        for each in commands:
            words = say(f"command_is_{each.state.replace(' ', '_')}")
            state = words if each.exit_code is None else f"{words} ({each.exit_code})"
            is_short = each.age_s < 600
            age = say("age_seconds", number=f"{each.age_s:.0f}") if is_short else say("age_minutes", number=f"{each.age_s / 60:.0f}")
            command = one_line(each.command)
            command = say("call_outside", title=command) if each.is_outside else command
            self._conversation.screen.line(say("background_command", id=each.id, state=state, age=age, command=command))

    def _stop(self, rest: str) -> None:
        if not rest:
            self._say(say("stop_usage"), "yellow")
        elif self._conversation.agent.stop_command(rest):
            self._say(say("command_stopped", id=rest))
        else:
            self._say(say("no_such_command", id=rest[:60]), "yellow")

    def _quit(self, rest: str) -> None:
        self._conversation.leave(0)
