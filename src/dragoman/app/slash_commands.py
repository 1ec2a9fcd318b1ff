"""Commands in files, and skills by name: `/review src` becomes the prompt it stands for.

Commands of the shell in them go the way of the model's: rules, the user, the sandbox. Where one may not run, the prompt says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from dragoman.app.connecting import connect_model
from dragoman.app.extensions import folders_of
from dragoman.app.plugins import plugins_of
from dragoman.app.setup import Setup, catalog_of
from dragoman.app.skills import activate, limits_of, narrow, narrowing_of, notices_of, skill_parts
from dragoman.base import jsontext
from dragoman.base.ids import new_session_id
from dragoman.base.places import shorten_home
from dragoman.extensions.commands import FileCommand, find_commands
from dragoman.extensions.files import SourceProblem
from dragoman.extensions.skills import Skill, find_skills
from dragoman.extensions.templates import FilePart, Part, ShellPart, fill_in
from dragoman.foreign.model_names import find_named
from dragoman.loop.agent import Agent
from dragoman.loop.outside_calls import decide_outside, run_outside
from dragoman.loop.run import Run
from dragoman.policy.approvals import Limit
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.calls import Allow, Deny, Later, ToolOutput
from dragoman.values.errors import DragomanError, InputError
from dragoman.values.messages import Text, ToolCall
from dragoman.values.origin import Origin
from dragoman.words import say

MAX_FILE_BYTES = 100_000
MAX_PROMPT_CHARS = 1_000_000
MAX_LISTED = 200
FAMILIES = ("haiku", "opus", "sonnet")
Say = Callable[[str], None]


class CommandRow(NamedTuple):
    """A command as it is listed."""

    description: str
    origin: Origin
    hint: str = ""


class FileCommands:
    """The commands and skills that there are now, by name with its slash."""

    def __init__(self, setup: Setup, built_in: Collection[str] = ()) -> None:
        """Names that are `built_in` are left to the conversation."""
        self._setup = setup
        folders = folders_of(setup)
        plugins = plugins_of(setup)
        commands, skills = find_commands(folders, plugins.found), find_skills(folders, plugins.found)
        self.problems: tuple[SourceProblem, ...] = (*plugins.problems, *commands.problems, *skills.problems)
        self._found: dict[str, FileCommand | Skill] = {f"/{command.name}": command for command in commands.found}
        for skill in skills.found:
            if skill.for_user:
                self._found.setdefault(f"/{skill.name}", skill)
        self.hidden = {name: found.origin for name, found in self._found.items() if name in built_in}
        """Those that a built-in command of the same name stands before."""
        for name in self.hidden:
            del self._found[name]

    @property
    def rows(self) -> Mapping[str, CommandRow]:
        return {name: CommandRow(found.description, found.origin, found.argument_hint) for name, found in self._found.items()}

    @property
    def notices(self) -> list[str]:
        return notices_of(self.problems)

    def notices_about(self, line: str) -> list[str]:
        """Why a command of this name is not there, if its file cannot be read."""
        name = line.split(maxsplit=1)[0].rpartition(":")[2].removeprefix("/")
        stems = (name, os.path.join(name, "SKILL"))
        return [
            str(each) for each in self.problems if os.path.splitext(each.origin.path)[0].endswith(tuple(os.sep + stem for stem in stems))
        ]

    def find(self, line: str) -> Invocation | None:
        """What a line that begins with a slash invokes; None: no command of that name."""
        name = line.split(maxsplit=1)[0]
        found = self._found.get(name)
        return Invocation(self._setup, found, line.strip()[len(name) :].strip()) if found is not None else None


class Invocation:
    """One use of a command or a skill: `start` begins its run, `finish` follows when that is over."""

    def __init__(self, setup: Setup, found: FileCommand | Skill, arguments: str) -> None:
        self._setup = setup
        self._found = found
        self._arguments = arguments
        self._before = ""
        """The model to go back to afterwards."""

    async def start(self, agent: Agent, tell: Say = lambda text: None, prefix: str = "") -> Run:
        """Make the prompt and begin the run; `prefix` stands before the prompt. Raises InputError."""
        found = self._found
        limits = limits_of(agent, self._setup, found)
        if isinstance(found, Skill):
            run = agent.run(prefix + await _Prompt(agent, limits, tell).make(skill_parts(found, self._arguments)))
            activate(agent, found, limits, run)
            return run
        parts = fill_in(found.template, found.style, self._arguments, swallows=found.swallows, names=found.argument_names)
        prompt = await _Prompt(agent, limits, tell).make(parts)
        self._use_model(agent, found.model, tell)
        run = agent.run(prefix + prompt)
        narrow(agent, limits, run)
        return run

    def finish(self, agent: Agent) -> None:
        """Go back to the conversation's model, if the command had one of its own."""
        if self._before:
            agent.change_model(connect_model(self._setup, agent.blobs, self._before))
            self._before = ""

    def _use_model(self, agent: Agent, name: str, tell: Say) -> None:
        """The model that a command names, for its run. If it is unknown or cannot be reached, the model stays, and a notice says so."""
        before = f"{agent.provider.name}/{agent.model}"
        if name in FAMILIES:  # Claude Code's short names: the first of them that the service in use has
            row = catalog_of(self._setup).deployments.get(agent.provider.name)
            name = next((f"{row.name}/{each}" for each in row.models if each.startswith(f"claude-{name}")), "") if row is not None else ""
        if not name or name == "inherit":
            return
        try:
            row, model = find_named(catalog_of(self._setup), name, agent.provider.name)
            if f"{row.name}/{model}" == before:
                return
            agent.change_model(connect_model(self._setup, agent.blobs, f"{row.name}/{model}"))
        except DragomanError as error:
            tell(say("skills.model_not_used", name=name, now=before, reason=str(error)))
            return
        self._before = before


class _Prompt:
    """Puts what commands print and files say into a prompt."""

    def __init__(self, agent: Agent, limits: Sequence[Limit], tell: Say) -> None:
        self._agent = agent
        self._limits = limits
        self._tell = tell

    async def make(self, parts: list[Part]) -> str:
        texts: list[str] = []
        for part in parts:
            if isinstance(part, ShellPart):
                texts.append(await self._run(part.command))
            elif isinstance(part, FilePart):
                texts.append(await self._read(part))
            else:
                texts.append(part)
        prompt = "".join(texts).strip()
        if len(prompt) > MAX_PROMPT_CHARS:
            raise InputError(say("skills.prompt_too_long", most=f"{MAX_PROMPT_CHARS:,}"))
        if not prompt:
            raise InputError(say("skills.empty_command"))
        return prompt

    async def _run(self, command: str) -> str:
        """What a command prints. It is judged, and asked about, as if the model had called it."""
        tool = self._agent.tools.get("run_shell")
        if tool is None or not command.strip():
            return f"(`{command}` was not run: there is no tool for commands)"
        if (prepare := getattr(tool, "prepare_intent", None)) is not None:
            await prepare({"command": command})
        call = _call(tool.spec.name, command=command)
        decision = await self._decide(call)
        if not isinstance(decision, Allow):
            reason = _reason(decision)
            self._tell(say("skills.not_run", command=command, reason=reason))
            return f"(`{command}` was not run: {reason})"
        self._tell(say("skills.runs", command=command))
        call = msgspec.structs.replace(call, arguments=decision.arguments or call.arguments)
        return _printed(await run_outside(self._agent._harness, tool, call))

    async def _decide(self, call: ToolCall) -> Allow | Deny | Later:
        with narrowing_of(self._agent).holding(self._limits):
            return await decide_outside(self._agent._harness, call)

    async def _read(self, part: FilePart) -> str:
        """What a file says, unless the rules keep it from the model: whoever wrote the template gets no more than the model does."""
        workspace = self._agent.workspace
        try:
            path = workspace.resolve(part.path)
            call = _reading(path)
            if call is None:
                return part.written  # a path that leads nowhere is just text
            decision = await self._decide(call)
            if not isinstance(decision, Allow):
                raise ToolRefusal(_reason(decision), "refused")
            return await asyncio.to_thread(self._content, path)
        except (ToolRefusal, OSError) as error:
            self._tell(say("skills.file_not_read", path=part.path, reason=str(error)))
            return f"({part.path} was not read: {error})"

    def _content(self, path: str) -> str:
        """Between lines that name the file; of a folder the names in it. Raises ToolRefusal or OSError."""
        workspace = self._agent.workspace
        shown = workspace.display_path(path)
        if os.path.isdir(path):
            names = sorted(os.listdir(path))
            more = f"\n… {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else ""
            return f"\n{shown} holds:\n" + "\n".join(names[:MAX_LISTED]) + more + "\n"
        with workspace.open_file(path) as (descriptor, _):
            data = os.read(descriptor, MAX_FILE_BYTES + 1)
        if b"\0" in data:
            return f"({shown} is not text)"
        cut = "\n… (cut: read the rest with read_file)" if len(data) > MAX_FILE_BYTES else ""
        text = self._agent._harness.outputs.hide(data[:MAX_FILE_BYTES].decode("utf-8", "replace"))
        return f"\n--- {shown} ---\n{text}{cut}\n--- end of {shown} ---\n"


def _reading(path: str) -> ToolCall | None:
    """The call of the model's that would read it; None: there is nothing."""
    if not os.path.lexists(path):
        return None
    return _call("list_directory", path=path) if os.path.isdir(path) else _call("read_file", file_path=path)


def _call(name: str, **arguments: str) -> ToolCall:
    return ToolCall(f"slash-{new_session_id()}", name, jsontext.dumps(arguments))


def _reason(decision: Deny | Later) -> str:
    return getattr(decision, "reason", "") or "it was not decided"


def _printed(output: ToolOutput) -> str:
    """What a command printed, and its exit code if it failed."""
    command = output.command
    if command is None or command.background:
        return "\n".join(part.text for part in output.content if isinstance(part, Text))
    from dragoman.tools.printed_text import as_printed

    lines = [as_printed(each).rstrip("\n") for each in (command.stdout, command.stderr) if each]
    if command.exit_code:
        lines += [f"(exit code {command.exit_code})", *([f"({command.sandbox})"] if command.sandbox else [])]
    return "\n".join(lines) or "(it printed nothing)"


def origin_words(origin: Origin) -> str:
    """Where a command comes from, in a few words for a list."""
    return f"{origin.program} · {shorten_home(str(origin))}"


def completions(setup: Setup, built_in: Collection[str]) -> Mapping[str, str]:
    """Name with its slash → what it does and where it comes from."""
    rows = FileCommands(setup, built_in).rows
    return {name: " · ".join(filter(None, (row.hint, row.description, origin_words(row.origin)))) for name, row in rows.items()}
