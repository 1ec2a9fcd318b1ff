"""Dragoman as an installed agent of Harbor: `harbor run -d DATASET -a dragoman.fleet.harbor:Dragoman -m PROVIDER/MODEL`.

Harbor starts a container for each task; the container is the sandbox. What the agent did is read from its session on the host, so that
there is a trajectory also where the time was up and the agent was killed.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import (
    AgentAuthenticationError,
    AgentSafetyRefusalError,
    ApiConnectionClosedError,
    ApiError,
    ApiInternalServerError,
    ApiOverloadedError,
    ApiRateLimitError,
    ApiResponseStalledError,
    ApiUsageLimitError,
    BaseInstalledAgent,
    ContextWindowExceededError,
    ModelNotFoundError,
    NonZeroAgentExitCodeError,
    with_prompt_template,
)
from harbor.agents.options import InstalledAgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from pydantic import Field

from dragoman.base import jsontext
from dragoman.fleet.own_wheel import write_own_wheel
from dragoman.providers.catalog import builtin_catalog, profile_for
from dragoman.sessions.atif import to_atif
from dragoman.sessions.log import read_log
from dragoman.values.errors import ConfigError, InputError
from dragoman.values.record import Entry, Started
from dragoman.values.usage import Prices

HOME = "dragoman"
"""In the folder of the agent's logs: everything the program keeps."""
STREAM = "dragoman.jsonl"
COMPLAINTS = "dragoman.stderr.txt"
INSTALLED = "/installed-agent/dragoman"

ENDED = frozenset({0, 53, 56, 58, 59, 60, 61})
"""Exit codes after which the work counts as it is: answered, or at a limit of turns, repetition, length or money, or refused."""
_ERRORS: dict[str, type[NonZeroAgentExitCodeError]] = {
    "Unauthorized": AgentAuthenticationError,
    "Forbidden": AgentAuthenticationError,
    "NotFound": ModelNotFoundError,
    "ConfigError": ModelNotFoundError,
    "RateLimited": ApiRateLimitError,
    "QuotaExhausted": ApiUsageLimitError,
    "Overloaded": ApiOverloadedError,
    "ServerError": ApiInternalServerError,
    "ConnectionFailed": ApiConnectionClosedError,
    "TimedOut": ApiResponseStalledError,
    "StreamBroken": ApiConnectionClosedError,
    "ContextOverflow": ContextWindowExceededError,
    "Refused": AgentSafetyRefusalError,
}
"""The class of an error of ours → Harbor's, by which it decides whether to try again."""

_FIND_PYTHON = (
    "for python in python3.13 python3.12 python3.11 python3; do "
    "if $python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi; python=; done"
)


class DragomanOptions(InstalledAgentOptions):
    """What `--ak NAME=VALUE` sets."""

    install: str | None = Field(
        default=None, description="What pip installs: a wheel on this machine, a URL or a requirement; otherwise this very version."
    )
    max_turns: int | None = Field(default=None, ge=1, description="Most answers of the model.")
    budget_usd: float | None = Field(default=None, gt=0, description="What one attempt may spend.")
    trust: bool = Field(default=False, description="Whether the task's folder may configure the agent (AGENTS.md, .dragoman/ …).")


class Dragoman(BaseInstalledAgent):
    """The agent in a task's container. An image that already has `dragoman` is used as it is; into others goes the one that runs here."""

    capabilities: ClassVar[AgentCapabilities] = AgentCapabilities(atif=True, resume=True, skills=True, mcp_servers=True)
    options_model = DragomanOptions
    options: DragomanOptions

    @staticmethod
    def name() -> str:
        return "dragoman"

    def get_version_command(self) -> str | None:
        return f"{_ON_PATH} dragoman --version"

    def parse_version(self, stdout: str) -> str:
        return stdout.split()[-1] if stdout.split() else ""

    # --- before the work

    async def install(self, environment: BaseEnvironment) -> None:
        asked = self.options.install or ""
        if not asked:
            if self._version:
                raise ValueError("Dragoman is on no package index: name a wheel, --ak install=FILE, instead of a version")
            found = await environment.exec(command=f"{_ON_PATH} command -v dragoman", user="root")
            if found.return_code == 0:
                return
        with tempfile.TemporaryDirectory() as folder:
            wanted = await self._uploaded(environment, asked or await asyncio.to_thread(write_own_wheel, folder))
        has_python = await environment.exec(command=f'{_FIND_PYTHON}; test -n "$python"', user="root")
        if has_python.return_code == 0:
            make = f"{_FIND_PYTHON}; $python -m venv {INSTALLED} && {INSTALLED}/bin/python -m pip install --quiet {wanted}"
        else:
            await self.ensure_system_dependencies(environment, ("curl", "ca_certificates"))
            uv = "curl -LsSf https://astral.sh/uv/install.sh | env UV_INSTALL_DIR=/installed-agent/uv UV_NO_MODIFY_PATH=1 sh"
            places = "export UV_PYTHON_INSTALL_DIR=/installed-agent/python"
            make = f"{uv} && {places} && /installed-agent/uv/uv venv --quiet --python 3.13 {INSTALLED} && "
            make += f"/installed-agent/uv/uv pip install --quiet --python {INSTALLED}/bin/python {wanted}"
        await self.exec_as_root(environment, command=f"{make} && {INSTALLED}/bin/dragoman --version && chmod -R a+rX /installed-agent")

    async def _uploaded(self, environment: BaseEnvironment, wanted: str) -> str:
        """What pip is to install, for a shell. A file of this machine is taken into the container first."""
        if not _is_file(wanted):
            return shlex.quote(wanted)
        target = f"/installed-agent/{os.path.basename(wanted)}"
        await environment.upload_file(wanted, target)
        return shlex.quote(target)

    async def _configure(self, environment: BaseEnvironment) -> None:
        """Write the task's MCP servers where the agent looks for the user's own, and put its skills beside them."""
        lines = list(_server_lines(self.mcp_servers))
        if self.options.budget_usd is not None:
            lines += ["[budget]", f"usd = {self.options.budget_usd!r}"]
        if lines:
            await self._put(environment, "\n".join(lines) + "\n", f"{self._home}/config.toml")
        if self.skills_dir:
            copied = f"mkdir -p {self._home}/skills && cp -r {shlex.quote(self.skills_dir)}/. {self._home}/skills/"
            await self.exec_as_agent(environment, command=copied)

    async def _put(self, environment: BaseEnvironment, text: str, target: str) -> None:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            await environment.upload_file(file.name, target)

    # --- the work

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        if not self.model_name:
            raise ValueError("Name a model: -m provider/model")
        logs = str(self.environment_logs_dir)
        await self.exec_as_agent(environment, command=f"mkdir -p {self._home}")
        await self._configure(environment)
        await self._put(environment, instruction, f"{logs}/instruction.md")
        resume = " --resume latest" if self._resume else ""
        turns = f" --max-turns {self.options.max_turns}" if self.options.max_turns else ""
        trust = " --trust" if self.options.trust else ""
        model = shlex.quote(_model_of(self.model_name))
        command = (
            f"{_ON_PATH} dragoman -m {model} --sandbox external --approval auto --output-format stream-json{resume}{turns}{trust} "
            f"< {logs}/instruction.md >> {logs}/{STREAM} 2>> {logs}/{COMPLAINTS}; "
            f"code=$?; tail -n 1 {logs}/{STREAM}; tail -c 2000 {logs}/{COMPLAINTS} >&2; exit $code"
        )
        result = await environment.exec(command=command, env={"DRAGOMAN_HOME": self._home} | self._keys())
        if result.return_code not in ENDED:
            raise _error_of(result.return_code, result.stdout or "", self._truncate_output(result.stderr))

    @property
    def _home(self) -> str:
        return f"{self.environment_logs_dir}/{HOME}"

    def _keys(self) -> dict[str, str]:
        """The variables of this model's service, from Harbor's options or its environment. No others leave this machine."""
        try:
            deployment, _ = builtin_catalog().find(_model_of(self.model_name or ""))
        except ConfigError:
            return {}
        names = (*deployment.key_env, *deployment.token_env, *deployment.base_url_env, *deployment.env_headers.values())
        found = ((name, self._get_env(name)) for name in (*names, deployment.headers_env) if name)
        return {name: value for name, value in found if value}

    # --- after it

    def populate_context_post_run(self, context: AgentContext) -> None:
        """Write `trajectory.json`, and tell Harbor what was used."""
        sessions = dict(_sessions_in(self.logs_dir))
        main = [entries for head, entries in sessions.values() if not head.parent]
        if not main:
            return
        called = {head.session_id: entries for head, entries in sessions.values() if head.parent}
        try:
            told = to_atif(
                main[-1],
                prices_of=_prices_of,
                called=lambda session_id: [each for each in called.values() if _head_of(each).parent == session_id],
            )
        except InputError:  # killed before anything was said
            return
        (self.logs_dir / "trajectory.json").write_text(jsontext.dumps(told) + "\n", encoding="utf-8")
        totals = told["final_metrics"]
        context.n_input_tokens = totals.get("total_prompt_tokens")
        context.n_output_tokens = totals.get("total_completion_tokens")
        context.n_cache_tokens = totals.get("total_cached_tokens")
        context.cost_usd = totals.get("total_cost_usd")
        context.metadata = {"session_id": told.get("session_id")}


_ON_PATH = f'PATH="{INSTALLED}/bin:$PATH";'


def _is_file(path: str) -> bool:
    return os.path.isfile(path)


def _model_of(name: str) -> str:
    """Harbor says `google` for what is `gemini` here."""
    provider, slash, model = name.partition("/")
    return f"gemini/{model}" if slash and provider == "google" else name


def _server_lines(servers: Sequence[Any]) -> Iterator[str]:
    for server in servers:
        yield f"[mcp.servers.{jsontext.dumps(server.name)}]"
        if server.transport == "stdio":
            yield f"command = {jsontext.dumps(server.command)}"
            yield f"args = {jsontext.dumps(list(server.args))}"
        else:
            yield f"url = {jsontext.dumps(server.url)}"


def _error_of(code: int, last_line: str, complaint: str) -> NonZeroAgentExitCodeError:
    told: Mapping[str, Any] = {}
    try:
        told = msgspec.json.decode(last_line.strip().rpartition("\n")[2], type=dict).get("error") or {}
    except msgspec.DecodeError:
        pass
    otherwise = ApiError if code == 57 else AgentAuthenticationError if code == 41 else NonZeroAgentExitCodeError
    kind = _ERRORS.get(str(told.get("type", "")), otherwise)
    return kind(f"dragoman ended with exit code {code}: {told.get('message') or complaint}")


def _sessions_in(logs_dir: Path) -> Iterator[tuple[str, tuple[Started, tuple[Entry, ...]]]]:
    """The sessions among the agent's logs, in the order of their ids. A container may have put links there: none is followed."""
    folder = logs_dir / HOME / "data" / "sessions"
    inside = os.path.realpath(logs_dir)
    for path in sorted(folder.glob("*/*.jsonl"), key=lambda path: path.name):
        if not os.path.realpath(path).startswith(inside + os.sep):
            continue
        try:
            entries = read_log(path).entries
        except (OSError, InputError):
            continue
        if entries and isinstance(entries[0], Started):
            yield str(path), (entries[0], entries)


def _head_of(entries: Sequence[Entry]) -> Started:
    assert isinstance(entries[0], Started)
    return entries[0]


def _prices_of(deployment: str, model: str) -> Prices | None:
    row = builtin_catalog().deployments.get(deployment)
    return profile_for(row, model).prices if row is not None else None
