"""run_shell: runs a command and captures its output. Every process it started ends with the call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dragoman.base import jsontext
from dragoman.base.text import clip
from dragoman.base.visible import escape_hidden
from dragoman.tools.description import load_description
from dragoman.tools.output import CappedText, Outputs, Spool
from dragoman.tools.process import Exit, child_environment, find_program, run_process
from dragoman.tools.workspace import ToolRefusal, Workspace
from dragoman.values.contracts import NO_HOSTS, Intent, Launch, Show, ToolOutput
from dragoman.values.messages import Text, ToolSpec

MAX_COMMAND_BYTES = 64 * 1024
MAX_TIMEOUT_S = 600.0
_TITLE_CHARS = 100
_DISPLAY_LINES = 20
_DISPLAY_LINE_CHARS = 500
_JSON_FRAME_CHARS = 160
"""Size of the JSON around the two outputs: names, quotes, exit code, signal."""


class RunShell:
    """Runs commands with bash, or with sh if there is no bash.

    Secrets are removed from the environment, and the variables that `secret` names; `env` adds the user's own variables, unfiltered.
    `launch` gives what starts them, in a sandbox if it has one.
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
    ) -> None:
        self._workspace = workspace
        self._outputs = outputs
        self._timeout_s = min(timeout_s, MAX_TIMEOUT_S)
        self._env = env
        self._secret = secret
        self._launch = launch
        self.spec = ToolSpec.of(
            "run_shell",
            load_description("run_shell"),
            {
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "The command line."},
                    "description": {"type": "string", "description": "What it does, in a few words, for the user."},
                    "timeout_s": {
                        "type": "number",
                        "description": f"Seconds until it is ended: {self._timeout_s:g} unless told, {MAX_TIMEOUT_S:g} at most.",
                    },
                    "directory": {"type": "string", "description": "Where to run it; the workspace's root unless told."},
                },
                "required": ["command"],
                "additionalProperties": False,
            },
            display_name="Shell",
            kind="execute",
        )

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
        sandboxed = self._launch is not None and self._launch().is_sandbox
        return Intent(title=title, preview=preview, problem=problem, command=command, directory=directory, sandboxed=sandboxed)

    async def prepare_intent(self, args: Mapping[str, Any]) -> None:
        if self._launch is not None:
            await self._launch().prepare()

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        try:
            argv, directory, timeout_s = self._prepare(args)
        except ToolRefusal as refused:
            return refused.output()
        stdout, stderr = self._outputs.spool("stdout"), self._outputs.spool("stderr")
        screen = _Screen(show)
        try:
            ended = await run_process(
                argv,
                directory=directory,
                env=child_environment(self._env, self._secret()),
                take_stdout=lambda data: screen.add(stdout.feed(data)),
                take_stderr=lambda data: screen.add(stderr.feed(data)),
                timeout_s=timeout_s,
                launch=self._launch() if self._launch is not None else None,
            )
        except OSError as error:
            return ToolRefusal(f"the command could not be started: {error.strerror or error}", "not_started").output()
        except BaseException:
            stdout.discard()
            stderr.discard()
            raise
        finally:
            screen.close()
        remark = ended.remark
        if not remark and self._launch is not None and ended.code:
            remark = self._launch().explain(screen.end)
        return _to_output(ended, stdout, stderr, self._outputs, screen.summary(ended, timeout_s), remark)

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
        return [*self._shell(), command], self._directory(str(args.get("directory") or ".")), min(timeout_s, MAX_TIMEOUT_S)

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


def _to_output(ended: Exit, stdout: Spool, stderr: Spool, outputs: Outputs, display: str, remark: str) -> ToolOutput:
    out, err = _cap_both(stdout, stderr, outputs)
    result: dict[str, object] = {"stdout": out.text, "stderr": err.text, "exitCode": ended.code}
    if ended.signal:
        result["signal"] = ended.signal
    if ended.timed_out:
        result["timedOut"] = True
    if remark:
        result["sandbox"] = remark
    if ended.hosts != NO_HOSTS:
        result["network"] = {"reached": ended.hosts.reached, "refused": ended.hosts.refused}
    return ToolOutput(
        (Text(jsontext.dumps(result)),),
        display=display,
        is_error=ended.timed_out,
        error_type="timed_out" if ended.timed_out else "",
        output_file=out.output_file or err.output_file,
    )


def _cap_both(stdout: Spool, stderr: Spool, outputs: Outputs) -> tuple[CappedText, CappedText]:
    """Cap both outputs so that their JSON together stays within the cap. What one does not need goes to the other."""
    room = max(0, outputs.max_chars - _JSON_FRAME_CHARS)
    out, err = stdout.need(_json_chars), stderr.need(_json_chars)
    half = room // 2
    out_room = max(half, room - err)
    err_room = max(half, room - out)
    note = outputs.note_chars
    return (
        stdout.finish(out_room if out <= out_room else out_room - note, _json_chars),
        stderr.finish(err_room if err <= err_room else err_room - note, _json_chars),
    )


def _json_chars(text: str) -> int:
    """The length of a text inside a JSON string: a newline counts two, an escape character six."""
    return len(jsontext.dumps(text)) - 2


class _Screen:
    """Live display for the user: output as it arrives, at most twenty times a second, and the last lines at the end."""

    PERIOD_S = 0.05
    DELTA_CHARS = 2_000
    """Limit of one update; of more, the end is shown."""
    TOTAL_CHARS = 1_000_000
    """Limit of live output per call."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._waiting = ""
        self._room = self.TOTAL_CHARS
        self._timer: asyncio.TimerHandle | None = None
        self._shown_at_s = float("-inf")
        self._end = ""
        self._breaks = 0
        self._ends_line = True

    def add(self, text: str) -> None:
        if not text:
            return
        self._breaks += text.count("\n")
        self._ends_line = text.endswith("\n")
        self._end = _append_tail(self._end, text, _DISPLAY_LINES * _DISPLAY_LINE_CHARS)
        self._waiting = _append_tail(self._waiting, text, self.DELTA_CHARS + 1)
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        due_s = self._shown_at_s + self.PERIOD_S
        if loop.time() >= due_s:
            self._flush()
        else:
            self._timer = loop.call_at(due_s, self._flush)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._flush()

    @property
    def end(self) -> str:
        """The last of what the command said."""
        return self._end

    def summary(self, ended: Exit, timeout_s: float) -> str:
        """The last lines, how many there were, and how the command ended unless it succeeded."""
        count = self._breaks + (not self._ends_line)
        lines = _for_display(self._end).splitlines()[-_DISPLAY_LINES:]
        parts = [f"… the last {len(lines)} of {count:,} lines"] if count > len(lines) else []
        parts += [clip(line, _DISPLAY_LINE_CHARS) for line in lines]
        if ended.timed_out:
            parts.append(f"(ended after {timeout_s:g} s)")
        elif ended.signal:
            parts.append(f"(ended by {ended.signal})")
        elif ended.code:
            parts.append(f"(exit code {ended.code})")
        parts = parts or ["(no output)"]
        for word, hosts in (("reached", ended.hosts.reached), ("refused to reach", ended.hosts.refused)):
            if hosts:
                parts.append(clip(f"({word} {', '.join(hosts)})", _DISPLAY_LINE_CHARS))
        return "\n".join(parts)

    def _flush(self) -> None:
        self._timer = None
        text, self._waiting = self._waiting, ""
        if not text or self._room <= 0:
            return
        if len(text) > self.DELTA_CHARS:
            text = "…" + text[-self.DELTA_CHARS :]
        self._room -= len(text)
        if self._room <= 0:
            text += "\n… (more than can be shown while it runs)\n"
        self._shown_at_s = asyncio.get_running_loop().time()
        self._show(_for_display(text))


def _append_tail(text: str, more: str, chars: int) -> str:
    return (text + more[-chars:])[-chars:]


def _for_display(text: str) -> str:
    # Progress bars return to the start of the line: show each update as its own line.
    return escape_hidden(text.replace("\r\n", "\n").replace("\r", "\n"))
