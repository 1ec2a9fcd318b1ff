"""Tools that a command of the user's own declares and another one carries out.

    discovery command                → a JSON list of declarations on stdout
    call command, the tool's name    ← the arguments as JSON on stdin; → the result on stdout

Both come from the user's config and run without a shell, each in a process group of its own that ends with it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.base import jsontext
from dragoman.tools import results
from dragoman.tools.process import run_process
from dragoman.tools.registry import Registry
from dragoman.values.contracts import Intent, Show, Tool, ToolOutput
from dragoman.values.errors import ConfigError, InputError
from dragoman.values.messages import Text, ToolKind, ToolSpec

DISCOVERY_TIMEOUT_S = 20.0
CALL_TIMEOUT_S = 300.0
MAX_DECLARATION_BYTES = 4_000_000
MAX_OUTPUT_BYTES = 10_000_000
"""What is kept of stdout and of stderr each; what comes beyond it is read and dropped."""

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
) -> list[Tool]:
    """The tools `command` declares, each of which runs `call_command NAME`. Raises ConfigError where there is nothing to be had.

    A declaration is `{name, description, parameters | parametersJsonSchema, read_only}`; Gemini's `{"function_declarations": […]}`
    is understood as well. env: the whole environment of the commands; None: our own.
    """
    if not command or not call_command:
        raise ConfigError("discovering tools takes two commands: one that lists them and one that calls them")
    try:
        done = await _run(command, b"", timeout_s, MAX_DECLARATION_BYTES, directory, env)
    except OSError as error:
        raise ConfigError(f"the tool discovery command {command[0]!r} cannot be run: {error.strerror or error}") from error
    if done.problem or done.exit_code != 0:
        why = done.problem or f"it ended with exit code {done.exit_code}"
        raise ConfigError(f"the tool discovery command {command[0]!r} failed: {why}{_first_line(done.stderr)}")
    if done.is_cut:
        raise ConfigError(f"the tool discovery command {command[0]!r} printed more than {MAX_DECLARATION_BYTES:,} bytes")
    call = _Call(tuple(call_command), directory, env, call_timeout_s)
    return [DiscoveredTool(spec, call) for spec in _specs(done.stdout, command[0])]


class DiscoveredTool:
    """A tool that another program carries out."""

    def __init__(self, spec: ToolSpec, call: _Call) -> None:
        self.spec = spec
        self._call = call

    def intend(self, args: Mapping[str, Any]) -> Intent:
        arguments = jsontext.dumps(args)
        command = " ".join([*self._call.command, self.spec.name])
        return Intent(f"{self.spec.name} {results.clipped(arguments, 100)}", f"$ {command}\n{arguments}")

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        call, name = self._call, self.spec.name
        try:
            done = await _run((*call.command, name), jsontext.encode(args), call.timeout_s, MAX_OUTPUT_BYTES, call.directory, call.env)
        except OSError as error:
            return results.failed(f"{name} failed: {call.command[0]} cannot be run: {error.strerror or error}", "not_runnable")
        if not done.problem and done.exit_code == 0:
            note = f"\n[more than {MAX_OUTPUT_BYTES:,} bytes were printed; the rest was dropped]" if done.is_cut else ""
            return ToolOutput((Text(_decoded(done.stdout) + note),))
        ended = done.problem or f"exit code: {done.exit_code}"
        words = [f"{name} failed.", f"stdout: {_decoded(done.stdout) or '(empty)'}", f"stderr: {_decoded(done.stderr) or '(empty)'}", ended]
        return results.failed("\n".join(words), "timeout" if done.problem else "exit_code")


class _Call(msgspec.Struct, frozen=True):
    """How discovered tools are called."""

    command: tuple[str, ...]
    directory: str | os.PathLike[str] | None
    env: Mapping[str, str] | None
    timeout_s: float


# --- declarations ----------------------------------------------------------------------------------------------------------------


def _specs(printed: bytes, command: str) -> list[ToolSpec]:
    try:
        declared = jsontext.decode(printed)
    except jsontext.NotJSON as error:
        raise ConfigError(
            f"the tool discovery command {command!r} did not print JSON ({error}): it must print a list of declarations, and print "
            f"anything else to stderr. It began: {_decoded(printed)[:80]!r}"
        ) from error
    specs = [_spec(declaration, command) for declaration in _declarations(declared)]
    try:
        Registry([_Declared(spec) for spec in specs])
    except InputError as error:
        raise ConfigError(f"the tool discovery command {command!r} declared a tool that cannot be taken: {error}") from error
    return specs


def _declarations(declared: Any) -> list[Any]:
    """The declarations, however they are grouped."""
    if isinstance(declared, list):
        return [each for item in declared for each in _declarations(item)]
    if isinstance(declared, dict):
        for key in _GROUP_KEYS:
            if isinstance(group := declared.get(key), list):
                return group
    return [declared]


def _spec(declaration: Any, command: str) -> ToolSpec:
    if not isinstance(declaration, dict) or not isinstance(name := declaration.get("name"), str):
        shown = results.clipped(jsontext.dumps(declaration), 80)
        raise ConfigError(f"the tool discovery command {command!r} declared something without a name: {shown}")
    schema: Any = next((declaration[key] for key in _SCHEMA_KEYS if declaration.get(key) is not None), None) or dict[str, Any]()
    if not isinstance(schema, dict):
        raise ConfigError(f"the tool discovery command {command!r} declared {name!r} with parameters that are no JSON Schema object")
    description = declaration.get("description")
    kind = declaration.get("kind")
    return ToolSpec.of(
        jsontext.valid_unicode(name),
        description if isinstance(description, str) else "",
        {"type": "object", "properties": {}} | _plain(schema),
        kind=kind if kind in _KINDS else "other",
        read_only=declaration.get("read_only") is True,
    )


_KINDS: tuple[ToolKind, ...] = ("read", "edit", "search", "execute", "fetch", "other")


def _plain(schema: Any) -> Any:
    """The schema with types in lower case: Gemini's declarations write them as STRING and OBJECT."""
    match schema:
        case dict():
            return {key: _plain_type(value) if key == "type" else _plain(value) for key, value in schema.items()}
        case list():
            return [_plain(item) for item in schema]
        case _:
            return schema


def _plain_type(kind: Any) -> Any:
    return kind.lower() if isinstance(kind, str) else _plain(kind)


class _Declared:
    """Stands in for a tool while its declaration is checked."""

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec

    def intend(self, args: Mapping[str, Any]) -> Intent:
        return Intent()

    async def run(self, args: Mapping[str, Any], show: Show) -> ToolOutput:
        return ToolOutput()


# --- running a command -----------------------------------------------------------------------------------------------------------


class _Done(msgspec.Struct, frozen=True):
    exit_code: int
    stdout: bytes
    stderr: bytes
    is_cut: bool = False
    problem: str = ""


class _Kept:
    """What a process prints, up to a bound."""

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
) -> _Done:
    """Run a command to its end, or end it. Raises OSError."""
    out, err = _Kept(max_bytes), _Kept(max_bytes)
    ended = await run_process(
        command,
        directory=os.fspath(directory or os.getcwd()),
        env=os.environ if env is None else env,
        take_stdout=out.take,
        take_stderr=err.take,
        timeout_s=timeout_s,
        stdin=stdin,
    )
    problem = f"it was ended, because it took longer than {timeout_s:g} s" if ended.timed_out else ""
    return _Done(ended.code, bytes(out.data), bytes(err.data), out.is_cut or err.is_cut, problem)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "␀")


def _first_line(stderr: bytes) -> str:
    lines = _decoded(stderr).strip().splitlines()
    return f" ({results.clipped(lines[0], 200)})" if lines else ""
