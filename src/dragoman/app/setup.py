"""From what the user set to an agent that is ready to run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.app.choice import Choice, choose_model, named_choice
from dragoman.app.config import Config, Loaded, TextToolsTable, load
from dragoman.app.options import Options
from dragoman.base.places import Places, find_places
from dragoman.base.words import choose_language, say
from dragoman.values.errors import ConfigError, DragomanError, InputError, SandboxError, Unauthorized

if TYPE_CHECKING:
    from dragoman.context.settings import ContextSettings
    from dragoman.loop.agent import Agent, Limits
    from dragoman.loop.web import Web
    from dragoman.providers.catalog import Catalog
    from dragoman.providers.connect import Connection
    from dragoman.text_tools.wrapper import TextOptions
    from dragoman.values.contracts import Ask, AskUser, BlobStore
    from dragoman.values.messages import Settings

MAX_SYSTEM_BYTES = 100_000


class Setup(msgspec.Struct, frozen=True):
    """Everything a command goes by."""

    options: Options
    env: Mapping[str, str]
    places: Places
    workspace: str
    loaded: Loaded
    choice: Choice | None = None
    """The model, once it is settled (first_use.py); else it is chosen anew whenever it is asked for."""
    notices: tuple[str, ...] = ()
    """What was settled on the way, and the user should know."""

    @property
    def config(self) -> Config:
        return self.loaded.config


def set_up(options: Options, env: Mapping[str, str] | None = None) -> Setup:
    """Read the configuration. Raises InputError or ConfigError."""
    env = os.environ if env is None else env
    workspace = _directory(options.directory or os.curdir, say("named_directory"))
    places = find_places(env)
    loaded = load(options, env, places, workspace)
    choose_language(loaded.config.lang)
    return Setup(options, env, places, workspace, loaded)


def catalog_of(setup: Setup) -> Catalog:
    """The catalog with the user's own rows over it."""
    from dragoman.providers.catalog import builtin_catalog

    catalog = builtin_catalog()
    rows = setup.config.deployments
    if not rows:
        return catalog
    from dragoman.app.config_faults import place_row_error

    for name, row in rows.items():
        try:
            catalog = catalog.with_rows({name: row}, "")
        except ConfigError as error:
            raise ConfigError(place_row_error(error, name, setup.loaded.files)) from error
    return catalog


def settled(setup: Setup, *, may_ask: bool) -> Setup:
    """With the model to begin with: one that nobody named is agreed to first, and weights are pulled where they have to be.

    Raises Unauthorized or InputError where the user has to do something. A resumed session has a model of its own.
    """
    if setup.options.resume is not None and not setup.options.model:
        return setup
    catalog = catalog_of(setup)
    choice = named_choice(setup, catalog)
    if choice is not None and not catalog.find(choice.model)[0].in_process:
        return msgspec.structs.replace(setup, choice=choice)
    from dragoman.app.first_use import settle

    return settle(setup, catalog, choice, may_ask=may_ask)


def make_agent(setup: Setup, *, ask: Ask | None = None, ask_user: AskUser | None = None) -> tuple[Agent, tuple[str, ...]]:
    """The agent, and what the user should be told before it runs."""
    config = setup.config
    if config.approval == "auto":
        raise SandboxError(say("no_sandbox"))
    from dragoman.loop.agent import Agent
    from dragoman.policy.grants import Grants

    memory, notices = read_memory(setup)
    agent = Agent(
        _model_to_begin_with(setup),
        connect=lambda model, blobs: _connected_again(setup, blobs, model),
        sessions=setup.places.sessions if config.sessions.keep or setup.options.resume is not None else None,
        resume="" if setup.options.resume is None else setup.options.resume or "latest",
        system=_system(setup),
        workspace=setup.workspace,
        include=[_directory(os.path.join(setup.workspace, each), "--include") for each in setup.options.include],
        approval=config.approval,
        ask=ask,
        ask_user=ask_user,
        grants=Grants(setup.places.grants_file, os.path.realpath(setup.workspace)),
        settings=settings_of(config),
        limits=limits_of(config),
        memory=memory,
        memory_file=setup.places.memory_file,
        context=context_of(config),
        web=web_of(config),
        tools_as=config.text_tools.mode,
        text=text_options_of(setup),
    )
    _disable(agent, setup)
    if not agent.provider.profile(agent.model).known and not is_local(setup, agent.provider.name):
        notices.append(say("unknown_model", name=f"{agent.provider.name}/{agent.model}", nearest=_nearest_model(setup, agent)))
    return agent, (*setup.loaded.notices, *setup.notices, *agent.notices, *notices)


def _model_to_begin_with(setup: Setup) -> str | None:
    """None: the one the resumed session was held with, unless another is named on the command line."""
    if setup.options.resume is not None and not setup.options.model:
        return None
    return choose_model(setup, catalog_of(setup)).model


def _connected_again(setup: Setup, blobs: BlobStore, model: str) -> Connection:
    """Where the model of a resumed session is not to be had, another may be."""
    try:
        return connected(setup, blobs, model)
    except (ConfigError, Unauthorized) as error:
        if setup.options.resume is None or setup.options.model:
            raise
        raise type(error)(say("resume_with_another", model=model, reason=error)) from error


def is_local(setup: Setup, deployment: str) -> bool:
    """Whether it is served on this machine, where nobody expects the catalog to know its models."""
    return catalog_of(setup)[deployment].local


def tidy_sessions(setup: Setup) -> None:
    """Delete what the user does not want kept any longer: when the work is done, so that nobody waits for it."""
    limits = setup.config.sessions
    if limits.max_age_days is None and limits.max_count is None:
        return
    from dragoman.sessions.store import Store

    try:
        Store(setup.places.sessions).retain(age_days=limits.max_age_days, count=limits.max_count)
    except (DragomanError, OSError):
        pass  # another time


async def discover_tools(setup: Setup, agent: Agent) -> None:
    """Add the tools that the user's own command declares, where there is one."""
    table = setup.config.tools
    if not table.discover:
        return
    from dragoman.tools.discovery import discover
    from dragoman.tools.process import child_environment

    for tool in await discover(table.discover, table.call, directory=setup.workspace, env=child_environment()):
        agent.registry.register(tool)


def connected(setup: Setup, blobs: BlobStore | None = None, model: str = "") -> Connection:
    """A provider for the model that was chosen, or for another: the same catalog, retries and logging."""
    from dragoman.loop.agent import find_weights
    from dragoman.providers.auth import auth_for
    from dragoman.providers.connect import connect
    from dragoman.providers.retry import RetryPolicy

    catalog = catalog_of(setup)
    model = model or choose_model(setup, catalog).model
    deployment, _ = catalog.find(model)
    auth = auth_for(deployment, setup.env)
    retry = setup.config.retry
    policy = RetryPolicy(retry.attempts, retry.first_delay_s, retry.max_delay_s, deadline_s=retry.deadline_s)
    if setup.options.debug:
        from dragoman.app.debug_log import log_to_stderr

        log_to_stderr(auth.secrets)
    connection = connect(
        model,
        auth=auth,
        env=setup.env,
        catalog=catalog,
        blobs=blobs,
        retry=policy,
        http=setup.config.http.client,
        weights=find_weights,
        kept=lambda: setup.places.prompts,
    )
    if setup.options.debug:
        from dragoman.providers.logged import Logged

        connection.provider = Logged(connection.provider, secrets=auth.secrets)
    return connection


def settings_of(config: Config) -> Settings:
    from dragoman.values.messages import Settings, Thinking

    table = config.settings
    return Settings(
        temperature=table.temperature,
        top_p=table.top_p,
        top_k=table.top_k,
        max_output_tokens=table.max_output_tokens,
        thinking=Thinking(table.thinking) if table.thinking else None,
    )


def limits_of(config: Config) -> Limits:
    from dragoman.loop.agent import Limits
    from dragoman.loop.chat import AnswerPolicy
    from dragoman.loop.loop_guard import LoopLimits

    answers = config.answers
    return Limits(
        max_turns=config.max_turns,
        answers=AnswerPolicy(answers.attempts, answers.delay_s, answers.temperature),
        loop=msgspec.convert(msgspec.to_builtins(config.loop_guard), LoopLimits),
        max_output_chars=config.tools.max_output_chars,
        shell_timeout_s=config.tools.shell_timeout_s,
    )


def text_options_of(setup: Setup) -> TextOptions | None:
    """How tools are put into text; None where nothing about it is set. Raises ConfigError for a dialect nobody knows."""
    table = setup.config.text_tools
    if table == TextToolsTable(table.mode):
        return None
    from dragoman.text_tools.dialect import DEFAULT, find
    from dragoman.text_tools.wrapper import TextOptions

    try:
        dialect = find(table.dialect).name if table.dialect else DEFAULT
    except ValueError as error:
        raise ConfigError(say("bad_dialect", source=setup.loaded.source("text_tools.dialect").name, reason=error)) from error
    return TextOptions(dialect, preserve_context=table.preserve_context, no_think=table.no_think or None, mapping=table.mapping)


def web_of(config: Config) -> Web | None:
    table = config.web
    if table.search == "off" and not table.fetch:
        return None
    from dragoman.loop.web import Web
    from dragoman.tools.web_settings import HostRules

    return Web(
        table.search, table.search_model, table.searxng, table.fetch, HostRules(table.allow_hosts, table.only_hosts), config.http.client
    )


def context_of(config: Config) -> ContextSettings:
    """The words in a pruned result's place are the user's own, or those of the program's language; Chinese ones are the library's."""
    from dragoman.context.settings import CompressSettings, ContextSettings, PruneRule, PruneSettings

    prune, compress = config.context.prune, config.context.compress
    placeholder = prune.placeholder or ("" if config.lang == "zh" else say("placeholder"))
    rule = PruneRule(prune.tools, round(prune.age_minutes * 60_000), prune.keep, prune.strict_stderr)
    return ContextSettings(
        PruneSettings(prune.schedule, rule, placeholder, prune.pressure, overhead=prune.overhead),
        CompressSettings(compress.enabled, compress.threshold, compress.threshold_tokens, compress.keep),
    )


def read_memory(setup: Setup) -> tuple[Sequence[tuple[str, str]], list[str]]:
    """What the user's memory files say, and the folder's where it is trusted; and what should be told of them."""
    from dragoman.loop.memory import recall

    memory = recall(setup.workspace, setup.places.config, trusted=setup.options.trust)
    notices = [say("memory_ignored", names=", ".join(memory.untrusted))] if memory.untrusted else []
    for problem in memory.problems:
        reason = problem.detail or say(f"not_used_{problem.kind}")
        if problem.by:
            notices.append(say("import_refused", name=problem.by, path=problem.path, reason=reason))
        else:
            notices.append(say("memory_unreadable", name=problem.path, reason=reason))
    return memory.files, notices


def _nearest_model(setup: Setup, agent: Agent) -> str:
    from dragoman.base.text import closest

    names = closest(agent.model, catalog_of(setup)[agent.provider.name].models)
    return say("unknown_model_nearest", names=names[0]) if names else ""


def _system(setup: Setup) -> str | None:
    path = setup.config.system_file
    if not path:
        return None
    from dragoman.app.text_files import FileProblem, read_text

    folder = os.path.dirname(setup.loaded.source("system_file").name)
    path = os.path.join(folder, os.path.expanduser(path))
    try:
        return read_text(path, MAX_SYSTEM_BYTES)
    except FileProblem as problem:
        raise ConfigError(say("system_file_unreadable", path=path, reason=problem)) from problem


def _disable(agent: Agent, setup: Setup) -> None:
    known = agent.registry.names
    for name in setup.config.tools.disabled:
        if name in known:
            agent.registry.remove(name)
        elif name != "ask_user":  # which is there only where somebody can be asked
            raise ConfigError(say("unknown_tool", source=setup.loaded.source("tools.disabled").name, name=name, known=", ".join(known)))


def _directory(path: str, named_by: str) -> str:
    path = os.path.abspath(os.path.expanduser(path))
    if os.path.isdir(path):
        return path
    raise InputError(say("no_such_directory" if not os.path.lexists(path) else "not_a_directory", path=path, named_by=named_by))
