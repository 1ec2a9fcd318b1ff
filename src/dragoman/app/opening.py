"""Opens and closes an agent for any front end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dragoman.app.choice import choose_model, local_choice, named_choice
from dragoman.app.connecting import connect_model
from dragoman.app.settings import context_of, limits_of, sandboxing_of, settings_of, text_options_of, web_of
from dragoman.app.setup import (
    Setup,
    catalog_of,
    has_server_files,
    is_from_package,
    may_exclude_tools,
    may_have,
    may_have_hooks,
    may_have_memory,
    may_have_subagents,
    require_directory,
)
from dragoman.base.places import temporary_folders
from dragoman.base.text import closest
from dragoman.loop.agent import Agent
from dragoman.loop.memory import load_memory
from dragoman.loop.options import ApprovalOptions, Connector, SessionOptions, ToolOptions, WorkspaceOptions
from dragoman.loop.surroundings import repository_root
from dragoman.loop.tasks import give_tasks
from dragoman.policy.grants import Grants
from dragoman.policy.judge import PREFIX_KEY
from dragoman.providers.catalog import secret_variables
from dragoman.sessions.projects import project_name
from dragoman.sessions.store import FileStore
from dragoman.tools.child_environment import child_environment, pass_variables
from dragoman.tools.shell import RunShell, ShellOutput
from dragoman.values.calls import Ask, AskUser
from dragoman.values.contracts import BlobStore, Provider
from dragoman.values.errors import ConfigError, DragomanError, Unauthorized
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.command_hooks import CommandHooks
    from dragoman.values.hooks import Hooks

MAX_SYSTEM_BYTES = 100_000
CLOSING_S = 1.0
T = TypeVar("T")


class Opened(msgspec.Struct, frozen=True):
    """An agent that is ready, and what the user should know before it runs."""

    agent: Agent
    notices: tuple[str, ...]
    """To show to the user before the first run."""


async def open_agent(
    setup: Setup,
    *,
    ask: Ask | None = None,
    ask_user: AskUser | None = None,
    waits: bool = True,
    opens_ports: bool = False,
    connector: Connector | None = None,
    session_id: str = "",
    takes_another: bool = False,
) -> Opened:
    """An agent that is ready to run, including the tools that the user's own command declares. Raises DragomanError.

    `waits`: for MCP servers whose tools are not known yet; otherwise they join at a later prompt. `opens_ports`: the user can open ports
    of commands to a browser, and is told of them. `connector`: how models are connected, in the place of what the configuration says.
    `session_id`: of a new session, where it was told already. `takes_another`: a session whose model cannot be reached goes on with the
    one that a new session would have, and a notice says so."""
    config = setup.config
    memory, notices = read_memory(setup)
    another: list[str] = []
    hooks = _hooks(setup)
    memory = [*memory, *_plugin_memory(setup)]
    agent = Agent(
        connector or _connector(setup, another if takes_another else None),
        system=_system(setup),
        tools=ToolOptions(
            builtin=True,
            web=web_of(config),
            calling=config.text_tools.mode,
            text=text_options_of(setup),
            pass_env=config.tools.pass_env,
            sandbox=sandboxing_of(config),
        ),
        workspace=WorkspaceOptions(
            setup.workspace,
            [require_directory(os.path.join(setup.workspace, each), "--include") for each in setup.options.include],
            memory=memory,
            memory_file=setup.places.memory_file,
            guarded=_guarded(setup),
            temporary=_temporary(setup),
        ),
        approval=ApprovalOptions(
            config.approval,
            ask,
            ask_user,
            _grants(setup),
            setup.loaded.rules,
            config.network.hosts,
            config.sandbox.run_unasked,
        ),
        session=_session(setup, session_id),
        settings=settings_of(config),
        limits=limits_of(config),
        context=context_of(config),
        fallback=_fallback(setup),
        hooks=(*_outside_hooks(setup), *((hooks.points(),) if hooks is not None else ())),
    )
    agent._harness.boundary.opens_ports = opens_ports
    if setup.trust.is_trusted and setup.trust.files and setup.trust.by != "flag":
        from dragoman.app.trust import Once, remember_believed

        agent._harness.before_commands = Once(lambda: remember_believed(setup.trust, setup.env, setup.places, setup.workspace))
    if setup.trust.is_trusted and agent._harness.orientation is not None and (root := repository_root(setup.workspace)):
        from dragoman.app.git_status import StatusLook

        agent._harness.orientation.status = StatusLook(root)
    if hooks is not None:
        hooks.bind(agent)
        notices += hooks.notices
    try:
        notices += await _add_tools(agent, setup, ask_user, waits=waits)
    except BaseException:
        await close_agent(agent)  # its session must not stay locked
        raise
    if not agent.provider.profile(agent.model).known and not is_local(setup, agent.provider.name):
        notices.append(say("unknown_model", name=f"{agent.provider.name}/{agent.model}", nearest=_nearest_model(setup, agent)))
    told = (*setup.notices, *another, *agent.notices, *notices, *_unused_grants(agent))
    if len(told) > 1:
        from dragoman.app.notices import one_for_each_file

        told = one_for_each_file(told)
    return Opened(agent, told)


async def _add_tools(agent: Agent, setup: Setup, ask_user: AskUser | None, *, waits: bool) -> list[str]:
    """The tools beside the built-in ones, without those the user has switched off; and what the user should know."""
    _load_tools(agent, setup)
    notices = [*_offer_skills(agent, setup), *_command_notices(setup)]
    await _discover_tools(agent, setup)
    if _has_servers(agent, setup):
        from dragoman.app.mcp import add_servers

        notices += await add_servers(agent, setup, ask_user, waits=waits)
    notices += _give_tasks(agent, setup)
    _disable_tools(agent, setup)
    _exclude_tools(agent, setup)
    return notices


async def close_agent(agent: Agent) -> None:
    """Takes at most a second, and what hooks at the end may take; anything that hangs is abandoned."""
    try:
        await agent.close_hooks()
        async with asyncio.timeout(CLOSING_S):
            await agent.aclose()
    except TimeoutError:
        pass


def run_loop(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """asyncio.run without waiting for threads at the end: one may hang for a minute in a DNS lookup."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.set_exception_handler(_log_only)
    try:
        return loop.run_until_complete(main())
    finally:
        end_tasks(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        loop.close()


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop that reports unhandled errors to the log, which --debug shows."""
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(_log_only)
    return loop


def end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the remaining tasks and wait for them, for a second at most."""
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=CLOSING_S))


def _log_only(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    logging.getLogger("dragoman.app").debug("%s", context.get("message"), exc_info=context.get("exception"))


def is_local(setup: Setup, deployment: str) -> bool:
    """Whether it is served on this machine, so that its models need not be in the catalog."""
    row = catalog_of(setup).deployments.get(deployment)
    return row is not None and row.local


def tidy_sessions(setup: Setup) -> tuple[str, ...]:
    """Delete sessions beyond the configured limits, and return what to tell the user about it. Called after the work, so that they do not
    wait for it."""
    limits = setup.config.sessions
    if limits.max_age_days is None and limits.max_count is None:
        return ()

    try:
        removed = FileStore(setup.places.sessions).delete_expired(age_days=limits.max_age_days, count=limits.max_count)
    except (DragomanError, OSError):
        return ()  # the next run tries again
    ids = removed.session_ids
    some = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
    told = [say("sessions.deleted_expired", count=len(ids), some=some)] if ids else []
    return (*told, removed.notice) if removed.notice else tuple(told)


# --- the parts of an agent


def _hooks(setup: Setup) -> CommandHooks | None:
    if not may_have_hooks(setup):
        return None
    from dragoman.app.command_hooks import open_hooks

    return open_hooks(setup)


def _grants(setup: Setup) -> Grants:
    return Grants(setup.places.grants_file, os.path.realpath(setup.workspace))


def _unused_grants(agent: Agent) -> tuple[str, ...]:
    """Says which saved approvals of the folder are no longer honoured."""
    keys = [key for key in agent.approvals.grants.saved if key.startswith(PREFIX_KEY)]
    if not keys:
        return ()
    from dragoman.app.approvals import unused_notice

    return unused_notice(keys)


def _guarded(setup: Setup) -> list[str]:
    """Files that decide what later runs do and lie where the user put them: the user's configuration, and the system prompt."""
    system = _system_file(setup)
    return [*(file.path for file in setup.loaded.files if file.kind == "user"), *([system] if system else [])]


def _session(setup: Setup, session_id: str) -> SessionOptions:
    resume = setup.options.resume
    is_kept = setup.config.sessions.keep or resume is not None
    store = FileStore(setup.places.sessions) if is_kept else None
    results = "" if is_kept else os.path.join(_results_folder(setup), f"results-{os.urandom(8).hex()}")
    return SessionOptions(store, "" if resume is None else resume or "latest", outputs=results, id=session_id)


def _results_folder(setup: Setup) -> str:
    """Where long results of a session that is not saved lie: not in the project's temporary folder, where commands write."""
    from dragoman.base.private import find_safe_folder

    include = (os.path.join(setup.workspace, each) for each in setup.options.include)
    within_reach = (setup.workspace, *include, *map(os.path.expanduser, setup.config.sandbox.writable), _temporary(setup))
    return find_safe_folder((setup.places.temporary, *temporary_folders()), within_reach) or setup.places.temporary


def _temporary(setup: Setup) -> str:
    """The project's own temporary folder."""
    return os.path.join(setup.places.temporary, project_name(setup.workspace))


def _fallback(setup: Setup) -> tuple[str, ...]:
    """The models of the fallback, checked now: a misspelt one should not be found when it is needed. Keys are looked for only then."""
    names = setup.config.fallback
    catalog = catalog_of(setup) if names else None
    for name in names:
        try:
            if catalog is not None and not is_from_package(name, catalog):
                catalog.find(name)
        except ConfigError as error:
            raise ConfigError(say("bad_fallback", source=setup.loaded.source("fallback").name, reason=error)) from error
    return names


def _connector(setup: Setup, another: list[str] | None = None) -> Connector:
    """A resumed session keeps its model, unless the command line names another or its log does not say. `another`: gets the notice that
    another is used, where that may be."""

    chosen = set[str]()

    def choose() -> str:
        model = choose_model(setup, catalog_of(setup)).model
        chosen.add(model)
        return model

    keeps_model = setup.options.resume is not None and not setup.options.model
    return Connector(
        lambda model, blobs: _connect(setup, blobs, model, chosen, another),
        "" if keeps_model else choose(),
        catalog_of(setup),
        setup.env,
        choose,
    )


def _connect(setup: Setup, blobs: BlobStore, model: str, chosen: set[str], another: list[str] | None) -> Provider:
    """If a resumed session's model is not available, the error says how to use another. `chosen`: those that the user chose."""
    try:
        return connect_model(setup, blobs, model)
    except (ConfigError, Unauthorized) as error:
        if setup.options.resume is None or model in chosen or model in setup.config.fallback:
            raise
        if another is None or (found := _other_model(setup, model)) is None:
            raise type(error)(say("resume_with_another", model=model, reason=error)) from error
        chosen.add(found)
        another.append(say("resumed_with_another", model=model, reason=error, now=found))
        return connect_model(setup, blobs, found)


def _other_model(setup: Setup, model: str) -> str | None:
    """What a new session would be held with, if that can be reached without a question; None if nothing can."""
    from dragoman.app.first_use import needs_weights

    catalog = catalog_of(setup)
    try:
        found = setup.choice or named_choice(setup, catalog) or local_choice(setup, catalog)
        return None if found is None or found.model == model or needs_weights(setup, found.model) else found.model
    except DragomanError:
        return None


def _load_tools(agent: Agent, setup: Setup) -> None:
    """Add the tools of installed packages that the user named."""
    if not (names := setup.config.tools.load):
        return
    from dragoman.tools.outside import load_tools

    for name in names:
        try:
            for tool in load_tools(name):
                agent.tools.register(tool)
        except ConfigError as error:
            raise ConfigError(say("tools_not_loaded", source=setup.loaded.source("tools.load").name, reason=error)) from error


def _outside_hooks(setup: Setup) -> Sequence[Hooks]:
    if not setup.config.plugins.hooks:
        return ()
    from dragoman.app.outside_hooks import load_hooks

    return load_hooks(setup)


def _plugin_memory(setup: Setup) -> Sequence[tuple[str, str]]:
    """The context files of gemini-cli's extensions."""
    if not may_have(setup, "extensions"):
        return ()
    from dragoman.app.skills import memory_of_plugins

    return memory_of_plugins(setup)


def _exclude_tools(agent: Agent, setup: Setup) -> None:
    """Take away the tools that settings and extensions of gemini-cli exclude."""
    if not may_exclude_tools(setup):
        return
    from dragoman.app.skills import excluded_tools

    for name in excluded_tools(setup):
        _disable_tool(agent, name)


def _offer_skills(agent: Agent, setup: Setup) -> list[str]:
    if not may_have(setup, "skills", "skill", "plugins", "extensions"):
        return []
    from dragoman.app.skills import offer_skills

    return offer_skills(agent, setup)


def _command_notices(setup: Setup) -> list[str]:
    """About commands in files that cannot be used. Whoever types one of them later gets the reason again."""
    if not may_have(setup, "command", "commands", "prompts"):
        return []
    from dragoman.app.skills import command_notices

    return command_notices(setup)


async def _discover_tools(agent: Agent, setup: Setup) -> None:
    """Add the tools that the user's own command declares, if one is configured."""
    table = setup.config.tools
    if not table.discover:
        return
    from dragoman.app.outside_programs import launch_outside
    from dragoman.tools.discovery import discover

    env = child_environment(pass_variables(table.pass_env), secret_variables(catalog_of(setup)))
    for tool in await discover(table.discover, table.call, directory=setup.workspace, env=env, launch=launch_outside()):
        agent.tools.register(tool)


def _has_servers(agent: Agent, setup: Setup) -> bool:
    """Whether some file may configure MCP servers, or the session has tools of some. No file is opened."""
    return has_server_files(setup) or any(spec.name.startswith("mcp__") or spec.name == "search_tools" for spec in agent.history.view.tools)


def _give_tasks(agent: Agent, setup: Setup) -> Sequence[str]:
    """Let the model call subagents. Where none are defined, nothing is loaded to find that out."""
    if not may_have_subagents(setup):
        give_tasks(agent._harness)
        return ()
    from dragoman.app.subagents import find_subagents

    agents, notices = find_subagents(setup, agent.provider.name)
    give_tasks(agent._harness, agents)
    return notices


def _disable_tools(agent: Agent, setup: Setup) -> None:
    known = agent.tools.names
    for name in setup.config.tools.disabled:
        if name in known:
            _disable_tool(agent, name)
        elif name != "ask_user":  # which exists only if there is a user to ask
            raise ConfigError(say("unknown_tool", source=setup.loaded.source("tools.disabled").name, name=name, known=", ".join(known)))


def _disable_tool(agent: Agent, name: str) -> None:
    removed = agent.tools.remove(name)
    if isinstance(removed, RunShell):
        agent.tools.remove("shell_output")
    elif isinstance(removed, ShellOutput) and isinstance(shell := agent.tools.get("run_shell"), RunShell):
        shell.leave_out_background()


def read_memory(setup: Setup) -> tuple[Sequence[tuple[str, str]], list[str]]:
    """The user's memory files, those of the folder if it is trusted, and notices about files that were not used."""
    trust = setup.trust
    options: dict[str, Any] = {}
    texts: tuple[tuple[str, str], ...] = ()
    notices: list[str] = []
    if may_have_memory(setup):
        from dragoman.app.extensions import folders_of
        from dragoman.foreign.memory import find_other_memory

        other = find_other_memory(folders_of(setup))
        texts, notices = other.texts, list(other.notices)
        options |= {"users": other.users, "names": other.names}
    if any(rule.decision == "deny" for rule in setup.loaded.rules):
        from dragoman.policy.denied_reads import deny_reads

        options["is_denied"] = deny_reads(setup.loaded.rules, setup.workspace)
    secret = setup.places.secret_files
    memory = load_memory(setup.workspace, setup.places.config, trusted=trust.is_trusted, root=trust.root, secret=secret, **options)
    for problem in memory.problems:
        reason = problem.detail or say(f"not_used_{problem.kind}")
        if problem.by:
            notices.append(say("import_refused", name=problem.by, path=problem.path, reason=reason))
        else:
            notices.append(say("memory_unreadable", name=problem.path, reason=reason))
    return (*memory.files, *texts), notices


def _nearest_model(setup: Setup, agent: Agent) -> str:
    row = catalog_of(setup).deployments.get(agent.provider.name)
    names = closest(agent.model, row.models) if row is not None else []
    return say("unknown_model_nearest", names=names[0]) if names else ""


def _system_file(setup: Setup) -> str:
    path = setup.config.system_file
    return os.path.join(os.path.dirname(setup.loaded.source("system_file").name), os.path.expanduser(path)) if path else ""


def _system(setup: Setup) -> str | None:
    path = _system_file(setup)
    if not path:
        return None
    from dragoman.base.text_files import FileProblem, read_text

    try:
        return read_text(path, MAX_SYSTEM_BYTES)
    except FileProblem as problem:
        raise ConfigError(say("system_file_unreadable", path=path, reason=problem)) from problem
