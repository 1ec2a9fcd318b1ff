"""`dragoman doctor`: checks everything a run needs, and says how to fix what is missing."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from dragoman import __version__
from dragoman.app.approvals import approvals_words
from dragoman.app.choice import choose_model
from dragoman.app.connecting import authenticate
from dragoman.app.keys import key_source
from dragoman.app.options import Options
from dragoman.app.setup import Choice, Setup, catalog_of, set_up
from dragoman.base import jsontext
from dragoman.base.text import one_line
from dragoman.http.clients import open_transport
from dragoman.http.connection import FAULTS
from dragoman.http.dialling import dial
from dragoman.http.route import HTTP_PROXIES, SOCKS_PROXIES, route_to
from dragoman.providers.catalog import filled, profile_for
from dragoman.tools.child_environment import find_program
from dragoman.tools.ripgrep import find_ripgrep
from dragoman.tools.workspace import ToolRefusal
from dragoman.values.errors import ConnectionFailed, DragomanError
from dragoman.values.profile import Deployment
from dragoman.words import say

REACH_S = 3.0
TMUX_WAIT_MS = 100
"""More than this is felt when Esc stops a run."""
LOW_DISK_BYTES = 100_000_000
_MARKS = {"ok": "✓", "warning": "!", "broken": "✗"}


class Finding(msgspec.Struct, frozen=True):
    """One line of `dragoman doctor`."""

    what: str
    state: Literal["ok", "warning", "broken"]
    text: str


def examine(options: Options) -> tuple[str, int]:
    """The findings as text or JSON, and the exit code: 1 if something is broken."""
    findings = list(_findings(options))
    code = 1 if any(finding.state == "broken" for finding in findings) else 0
    if options.output_format == "json":
        return jsontext.dumps({"ok": code == 0, "findings": findings}) + "\n", code
    width = max(len(finding.what) for finding in findings)
    lines = [f"{_MARKS[finding.state]} {finding.what:<{width}}  {one_line(finding.text)}" for finding in findings]
    return "\n".join([*lines, "", say("doctor_well" if code == 0 else "doctor_ill")]) + "\n", code


def _findings(options: Options) -> Iterator[Finding]:
    yield Finding("dragoman", "ok", __version__)
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", "ok", f"{version} ({sys.executable})")
    try:
        setup = set_up(options)
        catalog = catalog_of(setup)
    except DragomanError as error:
        yield Finding("config", "broken", str(error))
        setup = catalog = None
    else:
        read = [file.path for file in setup.loaded.files if file.state == "read"]
        yield Finding("config", "ok", ", ".join(read) or say("doctor_no_config"))
        yield from (Finding("config", "warning", notice) for notice in _notices(setup))
    if setup is not None and setup.config.http.client == "httpx":
        yield _check_safely("http", _httpx)
    if setup is not None and catalog is not None:
        yield from _model(setup, options)
    if workspace := setup.workspace if setup is not None else _working_directory():
        yield _check_safely("ripgrep", lambda: _ripgrep(workspace))
    yield _terminal()
    if setup is not None:
        for name in ("config", "data", "cache"):
            yield _folder(name, getattr(setup.places, name))
    if setup is not None:
        yield Finding("approvals", "ok", approvals_words(setup))
    if setup is not None:
        yield _check_safely("sandbox", lambda: _sandbox(setup))


def _working_directory() -> str:
    """Empty if somebody has deleted it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


# --- the model and its service --------------------------------------------------------------------------------------------------


def _model(setup: Setup, options: Options) -> Iterator[Finding]:
    catalog = catalog_of(setup)
    try:
        choice = choose_model(setup, catalog)
        deployment, model = catalog.find(choice.model)
    except DragomanError as error:
        yield Finding("model", "broken", str(error))
        return
    yield _model_finding(choice, deployment, model)
    try:
        authenticate(setup, deployment)
        source = key_source(deployment, setup)
    except DragomanError as error:
        yield Finding("key", "broken", str(error))
    else:
        yield Finding("key", "ok", source.words if source is not None else say("doctor_no_key_needed"))
    if sent := [name for name in (*deployment.env_headers.values(), deployment.headers_env) if setup.env.get(name, "").strip()]:
        yield Finding("headers", "ok", say("doctor_headers", names=", ".join(sent)))
    yield _check_safely("search", lambda: _search(setup))
    for name in setup.config.fallback:
        yield _check_safely("fallback", lambda name=name: _fallback(setup, name))
    if deployment.in_process:
        yield _engine()
        yield _check_safely("weights", lambda: _weights(setup, choice.model))
        return
    if options.offline:
        yield Finding("network", "warning", say("doctor_offline"))
        return
    yield _check_safely("network", lambda: _reach(deployment, setup))


def _model_finding(choice: Choice, deployment: Deployment, model: str) -> Finding:
    name = f"{deployment.name}/{model}"
    if profile_for(deployment, model).known:
        return Finding("model", "ok", say("doctor_model", name=name, why=choice.why))
    return Finding("model", "warning", say("doctor_unknown_model", name=name, why=choice.why))


def _search(setup: Setup) -> Finding:
    from dragoman.app.searching import who_searches

    return Finding("search", "ok", who_searches(setup, catalog_of(setup)) or say("doctor_search_by_chat_model"))


def _fallback(setup: Setup, name: str) -> Finding:
    """A model of the fallback without a key is skipped when it is needed: nothing is broken, but the user should know."""
    deployment, model = catalog_of(setup).find(name)
    try:
        authenticate(setup, deployment)
    except DragomanError as error:
        return Finding("fallback", "warning", say("doctor_fallback_skipped", name=f"{deployment.name}/{model}", reason=error))
    return Finding("fallback", "ok", f"{deployment.name}/{model}")


def _engine() -> Finding:
    from dragoman.local.engine import unusable_reason

    reason = unusable_reason()
    return Finding("engine", "broken", reason) if reason else Finding("engine", "ok", say("doctor_engine"))


def _weights(setup: Setup, model: str) -> Finding:
    from dragoman.app.first_use import needs_weights
    from dragoman.local.provider import weights_of

    name = model.partition("/")[2]
    if needs_weights(setup, model):
        return Finding("weights", "warning", say("doctor_no_weights", name=name))
    return Finding("weights", "ok", weights_of(name, setup.env))


def _httpx() -> Finding:
    from dragoman.http.httpx_transport import require_httpx

    require_httpx()
    return Finding("http", "ok", say("doctor_httpx"))


def _reach(deployment: Deployment, setup: Setup) -> Finding:
    """Connect to the chosen service over TCP, and TLS where used. Our own client sends no request; httpx2 sends a HEAD."""
    url = next((setup.env[name] for name in deployment.base_url_env if setup.env.get(name, "").strip()), deployment.base_url)
    scheme, _, rest = filled(url.strip(), setup.env, deployment.name).partition("://")
    origin = f"{scheme}://{rest.partition('/')[0]}"
    client = setup.config.http.client
    route = route_to(origin, None, HTTP_PROXIES if client == "own" else (*HTTP_PROXIES, *SOCKS_PROXIES))

    async def send_head() -> None:
        transport = open_transport(client, connect_timeout_s=REACH_S)
        try:
            async with asyncio.timeout(2 * REACH_S), transport.send("HEAD", f"{origin}/", {}, b""):
                pass
        except TimeoutError:
            raise ConnectionFailed(say("doctor_no_answer", where=route.full_route)) from None
        finally:
            await transport.aclose()

    async def connect() -> None:
        from dragoman.http.tls import load_tls_context

        context = load_tls_context(None, asyncio.get_running_loop()) if route.tls or route.hop.tls else None
        try:
            async with asyncio.timeout(REACH_S):
                connection = await dial(route, context)
        except FAULTS as error:
            from dragoman.http.faults import error_before_head

            raise error_before_head(error, route, REACH_S) from error
        await connection.aclose()

    began_s = time.monotonic()
    loop = asyncio.new_event_loop()  # not asyncio.run: it would wait for a DNS lookup that is still going on
    try:
        loop.run_until_complete(connect() if client == "own" else send_head())
    finally:
        loop.close()
    return Finding("network", "ok", say("doctor_reached", where=route.full_route, ms=int((time.monotonic() - began_s) * 1000)))


# --- the machine ----------------------------------------------------------------------------------------------------------------


def _notices(setup: Setup) -> tuple[str, ...]:
    """What every start says, and whatever else is wrong with the files of other programs."""
    from dragoman.app.notices import one_for_each_file
    from dragoman.conversation.pages.show_config import find_problems

    return one_for_each_file((*setup.notices, *find_problems(setup)))


def _check_safely(what: str, look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except DragomanError as error:
        return Finding(what, "broken", str(error))
    except Exception as error:
        return Finding(what, "broken", f"{type(error).__name__}: {error}")


def _ripgrep(workspace: str) -> Finding:
    try:
        return Finding("ripgrep", "ok", find_ripgrep(workspace))
    except ToolRefusal:
        return Finding("ripgrep", "broken", say("doctor_no_ripgrep"))


def _sandbox(setup: Setup) -> Finding:
    if sys.platform not in ("linux", "darwin"):
        return Finding("sandbox", "warning", say("policy.sandbox_none", reason=say("policy.sandbox_not_linux")))
    if sys.platform == "darwin":
        from dragoman.policy.sandbox.seatbelt_sandbox import SeatbeltSandbox as Sandbox
    else:
        from dragoman.policy.sandbox.sandbox import Sandbox

    sandbox = Sandbox([setup.workspace], level=setup.config.sandbox.level)
    try:
        detected = sandbox.detected
    finally:
        sandbox.close()
    if not detected.level and not detected.is_external and setup.config.sandbox.level != "off":
        return Finding("sandbox", "warning", say("doctor_no_sandbox", words=detected.words))
    return Finding("sandbox", "ok" if detected.level in (1, 2) or detected.is_external else "warning", detected.words)


def _terminal() -> Finding:
    streams = [(name, stream is not None and stream.isatty()) for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout))]
    encoding = getattr(sys.stdout, "encoding", "") or ""
    kind = os.environ.get("TERM") or "-"
    text = say(
        "doctor_terminal",
        streams=", ".join(f"{name} {'✓' if is_terminal else '-'}" for name, is_terminal in streams),
        kind=kind,
        encoding=encoding,
    )
    if encoding.lower().replace("-", "") != "utf8":
        return Finding("terminal", "warning", f"{text}; {say('doctor_not_utf8')}")
    if (wait_ms := _tmux_wait_ms()) > TMUX_WAIT_MS:
        return Finding("terminal", "warning", f"{text}; {say('doctor_tmux_escape', ms=wait_ms)}")
    return Finding("terminal", "ok", text)


def _tmux_wait_ms() -> int:
    """How long tmux holds back Esc, because it may begin another key; 0 outside of tmux."""
    if not os.environ.get("TMUX"):
        return 0
    import subprocess

    try:
        told = subprocess.run(
            [find_program("tmux", os.getcwd()), "show-options", "-sv", "escape-time"], capture_output=True, text=True, timeout=2
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return 0
    return int(told) if told.isdecimal() else 0


def _folder(name: str, folder: str) -> Finding:
    """Whether the folder is writable and how much disk space is free, found out without writing anything."""
    import shutil

    at = folder
    while not os.path.lexists(at) and at != os.path.dirname(at):
        at = os.path.dirname(at)
    if not os.path.isdir(at):
        return Finding(name, "broken", say("doctor_not_a_folder", path=at))
    if not os.access(at, os.W_OK | os.X_OK):
        return Finding(name, "broken" if name != "config" else "warning", say("doctor_not_writable", path=at))
    free = shutil.disk_usage(at).free
    text = say("doctor_place", path=folder, free=f"{free / 1e9:.1f}")
    return Finding(name, "ok" if free >= LOW_DISK_BYTES else "warning", text)
