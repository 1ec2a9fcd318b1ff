"""Converts configuration tables to the library's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from dragoman.app.config_tables import BudgetTable, Config, TextToolsTable
from dragoman.app.setup import Setup
from dragoman.context.settings import CompressSettings, ContextSettings, PruneRule, PruneSettings
from dragoman.loop.options import AnswerPolicy, Limits, LoopLimits, Sandboxing, WebAccess
from dragoman.tools.web import HostRules
from dragoman.values.errors import ConfigError
from dragoman.values.messages import Settings, Thinking
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.loop.budget import Budget
    from dragoman.text_tools.options import TextOptions


def settings_of(config: Config) -> Settings:
    table = config.settings
    return Settings(
        temperature=table.temperature,
        top_p=table.top_p,
        top_k=table.top_k,
        max_output_tokens=table.max_output_tokens,
        thinking=Thinking(table.thinking) if table.thinking else None,
    )


def limits_of(config: Config) -> Limits:
    answers = config.answers
    return Limits(
        max_turns=config.max_turns,
        answers=AnswerPolicy(answers.attempts, answers.delay_s, answers.temperature, answers.max_chars, answers.max_events),
        loop=msgspec.convert(msgspec.to_builtins(config.loop_guard), LoopLimits),
        max_output_chars=config.tools.max_output_chars,
        shell_timeout_s=config.tools.shell_timeout_s,
        budget=_budget_of(config.budget),
    )


def sandboxing_of(config: Config) -> Sandboxing:
    """The program hides itself from its commands: the keys are in its environment."""
    table = config.sandbox
    return Sandboxing(table.level, table.unix_sockets, table.writable, table.environment, hide_process=True)


def _budget_of(table: BudgetTable) -> Budget | None:
    if table == BudgetTable():
        return None
    from dragoman.loop.budget import Budget

    return Budget(**msgspec.structs.asdict(table))


def text_options_of(setup: Setup) -> TextOptions | None:
    """How tools are described in text; None if nothing about it is configured. Raises ConfigError for an unknown dialect."""
    table = setup.config.text_tools
    if table == TextToolsTable(table.mode):
        return None
    from dragoman.text_tools.dialect import DEFAULT
    from dragoman.text_tools.dialect_table import find_dialect
    from dragoman.text_tools.options import TextOptions

    try:
        dialect = find_dialect(table.dialect).name if table.dialect else DEFAULT
    except ValueError as error:
        raise ConfigError(say("bad_dialect", source=setup.loaded.source("text_tools.dialect").name, reason=error)) from error
    return TextOptions(
        dialect,
        preserve_context=table.preserve_context,
        no_think=table.no_think or None,
        mapping=table.mapping,
        model_mapping=table.model_mapping,
    )


def web_of(config: Config) -> WebAccess | None:
    table = config.web
    if table.search == "off" and not table.fetch:
        return None

    return WebAccess(
        table.search, table.search_model, table.searxng, table.fetch, HostRules(table.allow_hosts, table.only_hosts), config.http.client
    )


def context_of(config: Config) -> ContextSettings:
    prune, compress = config.context.prune, config.context.compress
    rule = PruneRule(prune.tools, round(prune.age_minutes * 60_000), prune.keep, prune.strict_stderr, prune.by_content, prune.superseded)
    return ContextSettings(
        PruneSettings(
            prune.schedule,
            rule,
            prune.placeholder,
            prune.pressure,
            overhead=prune.overhead,
            share=prune.share,
            overdraft=prune.overdraft,
        ),
        CompressSettings(compress.enabled, compress.threshold, compress.threshold_tokens, compress.keep),
    )
