"""run_shell: runs a command and captures its output. Every process it started ends with the call, unless it is to go on in the background;
then shell_output reads what it prints, and stops it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.base.visible import escape_hidden
from dragoman.tools.child_environment import child_environment, find_program, path_outside
from dragoman.tools.description import load_description
from dragoman.tools.job import call_at_work
from dragoman.tools.output import Outputs
from dragoman.tools.workspace import ToolRefusal, Workspace
from dragoman.values.calls import Intent, Show, ToolOutput, WriteApproval
from dragoman.values.messages import ToolCall, ToolSpec

if TYPE_CHECKING:
    from dragoman.tools.background import BackgroundCommands
    from dragoman.tools.command_text import CommandStream
    from dragoman.tools.left_running import Leavable
    from dragoman.tools.process import Exit, Take
    from dragoman.tools.terminal_text import TerminalText
    from dragoman.tools.writing import Afterwards
    from dragoman.values.commands import Launch, OutsideRun, Reach

MAX_COMMAND_BYTES = 64 * 1024
MAX_TIMEOUT_S = 600.0
_TITLE_CHARS = 100
GRACE_S = 1.0
"""How long the first output of a background command is waited for."""
MAX_WAIT_S = 60.0

_BACKGROUND = {"background": {"type": "boolean", "description": "For servers and watchers: return at once, read it with shell_output."}}
_WRITES = {"writes": {"type": "boolean", "description": "It changes files: if that needs approval, ask at once."}}
_OUTSIDE = {
    "outside": {
        "type": "string",
        "description": "Only if the sandbox stopped this command or surely will: why it must run outside, as a question to the user, "
        "who is asked each time.",
    }
}
_OUTSIDE_BY_RULE = {
    "outside": {
        "type": "string",
        "description": "Only if the sandbox stopped this command or surely will: why it must run outside it. Runs only if a rule of the "
        "user's allows it.",
    }
}
_STOPPED = " Never work around the sandbox."
_MOST_REASON = 500
_TTY = {"tty": {"type": "boolean", "description": "Give it a terminal, only where it needs one."}}


class RunShell:
    """Runs commands with bash, or with sh if there is no bash.

    Secrets are removed from the environment, and the variables that `secret` names; `env` adds the user's own variables, unfiltered.
    `launch` gives what starts them, in a sandbox if it has one; `background` what they go on in after the call, if they may.
    """

    def __init__(
        self,
        workspace: Workspace,
        outputs: Outputs,
        *,
        timeout_s: float = 120.0,
        env: Mapping[str, str] | None = None,
        secret: Callable[[], Collection[str]] = tuple,
        launch: Callable[[], Launch] | None = None,
        background: Callable[[], BackgroundCommands] | None = None,
        reach_of: Callable[[str], Reach] = lambda call_id: "workspace",
        writing: Callable[[], WriteApproval] | None = None,
        outside_run: Callable[[str], OutsideRun | None] | None = None,
        before_writing: Callable[[ToolCall], Awaitable[None]] | None = None,
        discarded_by: Callable[[str], tuple[str, str]] = lambda call_id: ("", ""),
        has_person: bool = True,
    ) -> None:
        """`reach_of`: how far the command of a call may reach, by the call's id. `writing`: gives who is asked whether a command that was
        refused to write may run again; `before_writing` is awaited then. `discarded_by`: what the model and the user are told of a call
        that throws work away of which copies are kept. `outside_run`: what a call was allowed to run outside the sandbox; None: nothing is
        offered to run there, for there is to be no sandbox. `has_person`: whether somebody can be asked for that."""
        self._has_person = has_person
        self._writing = writing
        self._reach_of = reach_of
        self._outside_run = outside_run
        self._before_writing = before_writing
        self._discarded_by = discarded_by
        self._workspace = workspace
        self._outputs = outputs
        self._timeout_s = min(timeout_s, MAX_TIMEOUT_S)
        self._env = env
        self._secret = secret
        self._launch = launch
        self._background = background
        self._leavable: dict[str, Leavable] = {}
        """The commands that calls wait for, by the id of the call."""
        self._has_started = False
        """Whether a command went on in the background."""
        self.spec = self._make_spec()

    def leave_running(self, call_id: str) -> bool:
        """Let the command of a call go on in the background: the call returns now. False where that cannot be."""
        leavable = self._leavable.get(call_id)
        return leavable is not None and leavable.leave()

    def time_limit_s(self, args: Mapping[str, Any]) -> float:
        """How long a call with these arguments may take; 0: as long as it wants."""
        try:
            told = float(args.get("timeout_s") or 0)
        except (TypeError, ValueError):
            return 0.0
        return 0.0 if args.get("background") else min(told or self._timeout_s, MAX_TIMEOUT_S)

    def leave_out_background(self) -> None:
        """Offer no background commands any more: there is no tool to read them with."""
        self._background = None
        self.spec = self._make_spec()

    def _make_spec(self) -> ToolSpec:
        return ToolSpec.of(
            "run_shell",
            load_description("run_shell") + (_STOPPED if self._outside_run is not None else ""),
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command line."},
                    "description": {"type": "string", "description": "What it does, in a few words, for the user."},
                    "timeout_s": {
                        "type": "number",
                        "description": f"Seconds until it is ended: {self._timeout_s:g} unless told, {MAX_TIMEOUT_S:g} at most.",
                    },
                    "directory": {
                        "type": "string",
                        "description": "Where to run it; the workspace's root unless told. Each call is a new shell: cd and variables do "
                        "not last.",
                    },
                    **(_BACKGROUND if self._background is not None else {}),
                    **_TTY,
                    **(_WRITES if self._launch is not None else {}),
                    **self._way_out(),
                },
                "required": ["command"],
                "additionalProperties": False,
            },
            display_name="Shell",
            kind="execute",
        )

    def _way_out(self) -> Mapping[str, Any]:
        return {} if self._outside_run is None else _OUTSIDE if self._has_person else _OUTSIDE_BY_RULE

    def intend(self, args: Mapping[str, Any]) -> Intent:
        command = str(args.get("command", ""))
        first, *others = command.strip().splitlines() or [""]
        title = "$ " + escape_hidden(first, one_line=True)
        if len(title) > _TITLE_CHARS or others:
            title = title[: _TITLE_CHARS - 1] + "…"
        problem, directory = "", ""
        try:
            _, directory, _ = self._prepare(args)
        except ToolRefusal as refused:
            problem = refused.message
        preview = escape_hidden(command)
        if args.get("directory"):
            preview = f"{preview}\n(in {escape_hidden(str(args['directory']), one_line=True)})"
        if args.get("background"):
            preview = f"{preview}\n(in the background)"
        sandboxed = self._launch is not None and self._launch().is_sandbox
        outside = str(args.get("outside") or "").strip()[:_MOST_REASON] if sandboxed else ""
        return Intent(
            title=title,
            preview=preview,
            problem=problem,
            command=command,
            directory=directory,
            sandboxed=sandboxed and not outside,
            outside=outside,
            writing=self._writing_of(args) if not outside else "",
        )

    def _writing_of(self, args: Mapping[str, Any]) -> Literal["", "tried", "wanted"]:
        has_read_only = self._launch is not None and self._launch().has_read_only
        return "" if not has_read_only else "wanted" if args.get("writes") else "tried"

    async def prepare_intent(self, args: Mapping[str, Any]) -> None:
        if self._launch is not None:
            await self._launch().prepare()

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            argv, directory, timeout_s = self._prepare(args)
            self._workspace.require_judged(directory)
            allowed = self._require_outside(args)
        except ToolRefusal as refused:
            return refused.output()
        try:
            if args.get("background"):
                return await self._start(args, argv, directory, allowed)
            return await self._run(args, argv, directory, timeout_s, show, allowed)
        except OSError as error:
            from dragoman.tools.refusals import describe_failure

            return describe_failure(error)

    async def _run(
        self,
        args: Mapping[str, Any],
        argv: list[str],
        directory: str,
        timeout_s: float,
        show: Show,
        allowed: OutsideRun | None,
        *,
        before: Exit | None = None,
    ) -> ToolOutput:
        """`before`: how it ended with the workspace read-only, if it runs again. Raises OSError."""
        from dragoman.tools.command_results import advise_after, ended_output  # none of them is needed before a command is run
        from dragoman.tools.command_text import CommandStream
        from dragoman.tools.left_running import Leavable
        from dragoman.tools.shell_screen import ShellScreen
        from dragoman.tools.writing import RAN_AGAIN, tell_runs

        tty, reach = bool(args.get("tty")), self._reach(allowed)
        stdout, stderr = CommandStream(self._outputs, "stdout"), CommandStream(self._outputs, "stderr")
        screen = ShellScreen(show)
        terminal = _new_terminal() if tty else None
        call, leavable, after = call_at_work.get(), None, None
        if call is not None and self._background is not None:
            leavable = self._leavable[call[0].id] = Leavable(self._background)
        try:
            ended = await self._wait_for(
                argv,
                directory,
                timeout_s,
                lambda data: screen.add(stdout.feed(data if terminal is None else terminal.feed(data).encode())),
                lambda data: screen.add(stderr.feed(data)),
                leavable,
                allowed,
                tty=tty,
                reach=reach,
            )
            if terminal is not None:
                screen.add(stdout.feed((terminal.feed(b"", is_end=True) + terminal.take()).encode()))
            if ended is None and leavable is not None:
                return await self._hand_over(leavable, argv[-1], stdout, stderr, allowed, tty=tty)
            if ended is not None and before is None and reach == "read-only":
                screen.close()
                after = await self._after_read_only(args, ended, screen.said)
        except BaseException:
            stdout.discard()
            stderr.discard()
            raise
        finally:
            screen.close()
            if call is not None:
                self._leavable.pop(call[0].id, None)
        assert ended is not None
        from dragoman.tools.process import tell_user

        tell_user(ended.notice)
        await self._tell_ports()
        if after is not None and after.runs_again:
            stdout.discard()
            stderr.discard()
            if self._before_writing is not None and call is not None:
                await self._before_writing(call[0])
            return await self._run(args, argv, directory, timeout_s, show, allowed, before=ended)
        told = after.remark if after is not None else ""
        explained = self._explain(ended, screen.end, directory, reach) if not told else ""
        kept, notice = self._discarded_by(call[0].id) if call is not None else ("", "")
        tell_user(notice, "files")
        remark = " ".join(filter(None, (RAN_AGAIN if before is not None else "", told, ended.remark, explained, kept)))
        output = ended_output(
            ended,
            stdout,
            stderr,
            self._outputs,
            display=screen.summary(ended, timeout_s),
            remark=remark,
            is_outside=allowed is not None,
            after_s=timeout_s,
            advice=advise_after(timeout_s, MAX_TIMEOUT_S, has_background=self._background is not None),
        )
        runs: list[tuple[Reach, Exit]] = [("read-only", before), (reach, ended)] if before is not None else [(reach, ended)]
        return msgspec.structs.replace(output, extras=tell_runs(runs))

    async def _after_read_only(self, args: Mapping[str, Any], ended: Exit, said: str) -> Afterwards:
        """Whether it was refused to write, and is to run again."""
        from dragoman.tools.writing import Afterwards, after_read_only

        call = call_at_work.get()
        if self._launch is None or self._writing is None or call is None:
            return Afterwards()
        return await after_read_only(call[0], self.intend(args), ended, said, self._launch(), self._writing())

    async def _tell_ports(self) -> None:
        """A server that was started before may have begun to listen meanwhile."""
        if self._has_started and self._background is not None and self._launch is not None:
            from dragoman.tools.listening import tell_ports

            running = [each.id for each in self._background().describe() if each.state == "running"]
            await tell_ports(self._launch(), running)

    def _explain(self, ended: Exit, end: str, directory: str, reach: Reach) -> str:
        """What the sandbox stopped of a command that failed."""
        if self._launch is None or not ended.code:
            return ""
        can_leave = self._outside_run is not None and self._has_person
        from dragoman.tools.refusals import explain_refusal

        return explain_refusal(self._launch(), end, directory=directory, reach=reach, hosts=ended.hosts, can_leave=can_leave)

    def _reach(self, allowed: OutsideRun | None) -> Reach:
        """What was decided for the call at work. `allowed`: what it may run outside the sandbox."""
        if allowed is not None:
            return "outside"
        call = call_at_work.get()
        reach = self._reach_of(call[0].id) if call is not None else "workspace"
        return reach if reach != "outside" else "workspace"

    def _require_outside(self, args: Mapping[str, Any]) -> OutsideRun | None:
        """What the call at work may run outside the sandbox; None: it does not ask for that. Raises ToolRefusal where it was not allowed
        exactly this."""
        if not args.get("outside") or not (wanted := self.intend(args)).outside:
            return None
        call = call_at_work.get()
        allowed = self._outside_run(call[0].id) if self._outside_run is not None and call is not None else None
        if allowed is None or (allowed.command, allowed.directory, allowed.preview) != (wanted.command, wanted.directory, wanted.preview):
            raise ToolRefusal("it was not allowed to run outside the sandbox: it was not run", "not_allowed")
        return allowed

    async def _wait_for(
        self,
        argv: list[str],
        directory: str,
        timeout_s: float,
        out: Take,
        err: Take,
        leavable: Leavable | None,
        allowed: OutsideRun | None,
        *,
        tty: bool,
        reach: Reach,
    ) -> Exit | None:
        """Run it to its end; None: it was left running. Raises OSError."""
        from dragoman.tools.process import run_process

        running = run_process(
            argv,
            directory=directory,
            env=self._environment(allowed, tty=tty),
            take_stdout=out if leavable is None else leavable.taking(out),
            take_stderr=err if leavable is None else leavable.taking(err),
            timeout_s=timeout_s,
            launch=self._launch() if self._launch is not None else None,
            streams="tty" if tty else "apart",
            control=leavable.control if leavable is not None else None,
            reach=reach,
        )
        return await (running if leavable is None else leavable.wait(running))

    async def _hand_over(
        self, leavable: Leavable, command: str, stdout: CommandStream, stderr: CommandStream, allowed: OutsideRun | None, *, tty: bool
    ) -> ToolOutput:
        """The call is over, and the command is not."""
        from dragoman.tools.background_results import describe_start
        from dragoman.tools.left_running import NOTE

        stdout.end()
        stderr.end()
        printed = "".join(stream.cut(self._outputs.max_chars // 2).text for stream in (stdout, stderr))
        adopted = await leavable.hand_over(command, printed.replace("\n", "\r\n") if tty else printed, tty=tty)
        adopted.is_outside = allowed is not None
        self._has_started = True
        launch = self._launch() if self._launch is not None and allowed is None else None
        return await describe_start(adopted, self._outputs, launch=launch, note=NOTE)

    async def _start(self, args: Mapping[str, Any], argv: list[str], directory: str, allowed: OutsideRun | None) -> ToolOutput:
        """Raises OSError."""
        from dragoman.tools.background_results import describe_start
        from dragoman.tools.writing import background_note

        assert self._background is not None
        reach = self._reach(allowed)
        tty = bool(args.get("tty"))
        timeout_s = float(args["timeout_s"]) if args.get("timeout_s") else None
        launch = self._launch() if self._launch is not None else None
        environment = self._environment(allowed, tty=tty)
        weak = weakref.ref(self)  # a command that goes on must not keep the agent that was dropped
        command = await self._background().start(
            argv,
            argv[-1],
            directory=directory,
            env=environment,
            launch=launch,
            timeout_s=timeout_s,
            tty=tty,
            grace_s=GRACE_S,
            reach=reach,
            explain=lambda ended, end: tool._explain(ended, end, directory, reach) if (tool := weak()) is not None else "",
        )
        self._has_started = True
        note = background_note(self._writing() if self._writing is not None else None) if reach == "read-only" else ""
        return await describe_start(command, self._outputs, launch=launch if reach != "outside" else None, note=note)

    def give_variables(self, variables: Mapping[str, str]) -> None:
        """Commands get these besides, unfiltered."""
        self._env = {**(self._env or {}), **variables}

    def _environment(self, allowed: OutsideRun | None, *, tty: bool) -> dict[str, str]:
        made = child_environment(self._env, self._secret())
        if allowed is not None and allowed.untrusted:
            made |= {**dict(allowed.environment), "PATH": path_outside(allowed.untrusted)}
        return {**made, "TERM": "xterm-256color"} if tty else made

    def _prepare(self, args: Mapping[str, Any]) -> tuple[list[str], str, float]:
        """The command line, its directory and its timeout. Raises ToolRefusal."""
        command = str(args.get("command", ""))
        if not command.strip():
            raise ToolRefusal("the command is empty", "invalid")
        if "\0" in command:
            raise ToolRefusal("the command holds a NUL character, which no program can be given: write it as \\0 in printf", "invalid")
        size_bytes = len(command.encode("utf-8", "replace"))
        if size_bytes > MAX_COMMAND_BYTES:
            raise ToolRefusal(
                f"the command is {size_bytes:,} bytes long, and {MAX_COMMAND_BYTES:,} are allowed: "
                "write a script with write_file and run that",
                "too_long",
            )
        timeout_s = float(args.get("timeout_s") or self._timeout_s)
        if not timeout_s > 0:
            raise ToolRefusal("timeout_s must be more than 0", "invalid")
        if args.get("background"):
            self._require_background()
        if args.get("tty"):
            self._require_terminal()
        return [*self._shell(), command], self._directory(str(args.get("directory") or ".")), min(timeout_s, MAX_TIMEOUT_S)

    def _require_background(self) -> None:
        if self._background is None:
            raise ToolRefusal("nothing can be left in the background here: run it without background", "invalid")
        from dragoman.tools.background import MAX_RUNNING

        if self._background().running >= MAX_RUNNING:
            raise ToolRefusal(f"{MAX_RUNNING} commands are running in the background already: stop one with shell_output first", "too_many")

    def _require_terminal(self) -> None:
        if os.name != "posix":
            raise ToolRefusal("there are no terminals for commands on this system: run it without tty", "no_terminal")
        if self._launch is not None and not self._launch().has_terminals:
            raise ToolRefusal("the sandbox of this system (Landlock alone) gives no terminals: run it without tty", "no_terminal")

    def _directory(self, path: str) -> str:
        directory = self._workspace.resolve(path)
        if os.path.isdir(directory):
            return directory
        shown = self._workspace.display_path(directory)
        if os.path.lexists(directory):
            raise ToolRefusal(f"{shown} is not a directory: name the directory to run the command in", "not_directory")
        raise ToolRefusal(f"{shown} does not exist: make it first, or name another directory", "not_found")

    def _shell(self) -> list[str]:
        if os.name != "posix":
            return [os.environ.get("COMSPEC", "cmd.exe"), "/d", "/s", "/c"]
        return [find_program("bash", outside=self._workspace.root) or "/bin/sh", "-c"]


class ShellOutput:
    """Reads what a background command has printed since it was last read, waits for it, and stops it."""

    def __init__(self, outputs: Outputs, background: Callable[[], BackgroundCommands], launch: Callable[[], Launch] | None = None) -> None:
        self._launch = launch
        self._outputs = outputs
        self._background = background
        self.spec = ToolSpec.of(
            "shell_output",
            load_description("shell_output"),
            {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "wait_s": {"type": "number", "description": f"Wait so long for output or its end, {MAX_WAIT_S:g} at most."},
                    "stop": {"type": "boolean", "description": "End it."},
                },
                "required": ["id"],
                "additionalProperties": False,
            },
            display_name="Background command",
            kind="read",
            read_only=True,
        )

    def intend(self, args: Mapping[str, Any]) -> Intent:
        verb = "stop" if args.get("stop") else "read"
        return Intent(title=f"{verb} {escape_hidden(str(args.get('id', '')), one_line=True)[:_TITLE_CHARS]}")

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        from dragoman.tools.background_results import read_command

        wait_s = min(max(float(args.get("wait_s") or 0), 0.0), MAX_WAIT_S)
        launch = self._launch() if self._launch is not None else None
        return await read_command(self._background(), self._outputs, str(args["id"]), launch, wait_s=wait_s, stop=bool(args.get("stop")))


def _new_terminal() -> TerminalText:
    from dragoman.tools.streams import COLUMNS, ROWS
    from dragoman.tools.terminal_text import TerminalText

    return TerminalText(ROWS, COLUMNS)
