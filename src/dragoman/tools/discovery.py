"""Tools declared by a command of the user's and run by another one.

    discovery command                → a JSON list of declarations on stdout
    call command, the tool's name    ← the arguments as JSON on stdin; → the result on stdout

Both come from the user's config and run without a shell, each in its own process group, which ends with it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.tools import results
from dragoman.tools.child_environment import child_environment
from dragoman.tools.process import run_process
from dragoman.tools.registry import Registry
from dragoman.values.calls import Intent, Show, Tool, ToolOutput
from dragoman.values.commands import Launch
from dragoman.values.errors import ConfigError, InputError
from dragoman.values.messages import Text, ToolKind, ToolSpec
from dragoman.words import say

DISCOVERY_TIMEOUT_S = 20.0
CALL_TIMEOUT_S = 300.0
MAX_DECLARATION_BYTES = 4_000_000
MAX_OUTPUT_BYTES = 10_000_000
"""Limit for stdout and for stderr; output beyond it is read and dropped."""

_SCHEMA_KEYS = ("parametersJsonSchema", "parameters_json_schema", "parameters", "inputSchema", "input_schema")
_GROUP_KEYS = ("function_declarations", "functionDeclarations")


async def discover(
    command: Sequence[str],
    call_command: Sequence[str],
    *,
    directory: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    timeout_s: float = DISCOVERY_TIMEOUT_S,
    call_timeout_s: float = CALL_TIMEOUT_S,
    launch: Launch | None = None,
) -> list[Tool]:
    """The tools `command` declares, each of which runs `call_command NAME`. Raises ConfigError if it fails or prints no valid declarations.

    A declaration is `{name, description, parameters | parametersJsonSchema, read_only}`; Gemini's `{"function_declarations": […]}`
    is understood too. env: the complete environment of the commands; None: ours without secrets. launch: starts and ends them.
    """
    if not command or not call_command:
        raise ConfigError(say("tools.discovery_two_commands"))
    try:
        result = await _run(command, b"", timeout_s, MAX_DECLARATION_BYTES, directory, env, launch)
    except OSError as error:
        raise ConfigError(say("tools.discovery_not_run", command=command[0], reason=error.strerror or error)) from error
    if result.problem or result.exit_code != 0:
        why = result.problem or say("tools.discovery_exit_code", code=result.exit_code)
        raise ConfigError(say("tools.discovery_failed", command=command[0], reason=why, detail=_first_line(result.stderr)))
    if result.is_cut:
        raise ConfigError(say("tools.discovery_too_long", command=command[0], most=MAX_DECLARATION_BYTES))
    call = _CallSettings(tuple(call_command), directory, env, call_timeout_s, launch)
    return [DiscoveredTool(spec, call) for spec in _specs(result.stdout, command[0])]


class DiscoveredTool:
    """A tool run by another program."""

    def __init__(self, spec: ToolSpec, call: _CallSettings) -> None:
        self.spec = spec
        self._call = call

    def intend(self, args: Mapping[str, Any]) -> Intent:
        arguments = jsontext.dumps(args)
        command = " ".join([*self._call.command, self.spec.name])
        return Intent(f"{self.spec.name} {results.truncate(arguments, 100)}", f"$ {command}\n{arguments}")

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        call, name = self._call, self.spec.name
        try:
            result = await _run(
                (*call.command, name), jsontext.encode(args), call.timeout_s, MAX_OUTPUT_BYTES, call.directory, call.env, call.launch
            )
        except OSError as error:
            return results.error_output(f"{name} failed: {call.command[0]} cannot be run: {error.strerror or error}", "not_runnable")
        if not result.problem and result.exit_code == 0:
            note = f"\n[more than {MAX_OUTPUT_BYTES:,} bytes were printed; the rest was dropped]" if result.is_cut else ""
            return ToolOutput((Text(_decode(result.stdout) + note),))
        ended = result.problem or f"exit code: {result.exit_code}"
        words = [
            f"{name} failed.",
            f"stdout: {_decode(result.stdout) or '(empty)'}",
            f"stderr: {_decode(result.stderr) or '(empty)'}",
            ended,
        ]
        return results.error_output("\n".join(words), "timeout" if result.problem else "exit_code")


class _CallSettings(msgspec.Struct, frozen=True):
    """How discovered tools are called."""

    command: tuple[str, ...]
    directory: str | os.PathLike[str] | None
    env: Mapping[str, str] | None
    timeout_s: float
    launch: Launch | None = None


# --- declarations ----------------------------------------------------------------------------------------------------------------


def _specs(printed: bytes, command: str) -> list[ToolSpec]:
    try:
        declared = jsontext.decode(printed)
    except jsontext.NotJSON as error:
        output = _decode(printed)[:80]
        raise ConfigError(say("tools.discovery_not_json", command=command, reason=error, output=output)) from error
    specs = [_spec(declaration, command) for declaration in _declarations(declared)]
    try:
        Registry([_PlaceholderTool(spec) for spec in specs])
    except InputError as error:
        raise ConfigError(say("tools.discovery_bad_tool", command=command, reason=error)) from error
    return specs


def _declarations(declared: Any) -> list[Any]:
    """The declarations as a flat list, however they are grouped."""
    if isinstance(declared, list):
        return [each for item in declared for each in _declarations(item)]
    if isinstance(declared, dict):
        for key in _GROUP_KEYS:
            if isinstance(group := declared.get(key), list):
                return group
    return [declared]


def _spec(declaration: Any, command: str) -> ToolSpec:
    if not isinstance(declaration, dict) or not isinstance(name := declaration.get("name"), str):
        shown = results.truncate(jsontext.dumps(declaration), 80)
        raise ConfigError(say("tools.discovery_no_name", command=command, declaration=shown))
    schema: Any = next((declaration[key] for key in _SCHEMA_KEYS if declaration.get(key) is not None), None) or dict[str, Any]()
    if not isinstance(schema, dict):
        raise ConfigError(say("tools.discovery_not_a_schema", command=command, name=name))
    description = declaration.get("description")
    kind = declaration.get("kind")
    return ToolSpec.of(
        jsontext.valid_unicode(name),
        description if isinstance(description, str) else "",
        {"type": "object", "properties": {}} | _lower_types(schema),
        kind=kind if kind in _KINDS else "other",
        read_only=declaration.get("read_only") is True,
    )


_KINDS: tuple[ToolKind, ...] = ("read", "edit", "search", "execute", "fetch", "other")


def _lower_types(schema: Any) -> Any:
    """The schema with types in lower case: Gemini's declarations write them as STRING and OBJECT."""
    match schema:
        case dict():
            return {key: _lower_type(value) if key == "type" else _lower_types(value) for key, value in schema.items()}
        case list():
            return [_lower_types(item) for item in schema]
        case _:
            return schema


def _lower_type(kind: Any) -> Any:
    return kind.lower() if isinstance(kind, str) else _lower_types(kind)


class _PlaceholderTool:
    """Placeholder for a tool while its declaration is checked."""

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return Intent()

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput()


# --- running a command -----------------------------------------------------------------------------------------------------------


class _CommandResult(msgspec.Struct, frozen=True):
    exit_code: int
    stdout: bytes
    stderr: bytes
    is_cut: bool = False
    problem: str = ""


class _BoundedBuffer:
    """Output of a process, up to a limit."""

    def __init__(self, max_bytes: int) -> None:
        self.data = bytearray()
        self.is_cut = False
        self._max_bytes = max_bytes

    def take(self, data: bytes) -> None:
        room = self._max_bytes - len(self.data)
        self.data += data[:room]
        self.is_cut = self.is_cut or len(data) > room


async def _run(
    command: Sequence[str],
    stdin: bytes,
    timeout_s: float,
    max_bytes: int,
    directory: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
    launch: Launch | None = None,
) -> _CommandResult:
    """Run a command until it ends or times out. Raises OSError."""
    out, err = _BoundedBuffer(max_bytes), _BoundedBuffer(max_bytes)
    environment = child_environment() if env is None else env
    ended = await run_process(
        command if launch is None else (_on_path(command[0], environment), *command[1:]),
        directory=os.fspath(directory or os.getcwd()),
        env=environment,
        take_stdout=out.take,
        take_stderr=err.take,
        timeout_s=timeout_s,
        stdin=stdin,
        launch=launch,
    )
    problem = f"it was ended, because it took longer than {timeout_s:g} s" if ended.timed_out else ""
    return _CommandResult(ended.code, bytes(out.data), bytes(err.data), out.is_cut or err.is_cut, problem)


def _on_path(name: str, env: Mapping[str, str]) -> str:
    """Where a program is: the launcher does not look for it."""
    if "/" in name:
        return name
    return shutil.which(name, path=env.get("PATH", os.defpath)) or name


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "␀")


def _first_line(stderr: bytes) -> str:
    lines = _decode(stderr).strip().splitlines()
    return f" ({results.truncate(lines[0], 200)})" if lines else ""
