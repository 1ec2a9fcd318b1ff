"""The rules of configuration files and of the command line, each with its file and line. Loaded only if there are any."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman.app.config_faults import explain
from dragoman.app.config_tables import ConfigFile, RulesTable
from dragoman.app.options import Options
from dragoman.base.text_files import FileProblem, read_text
from dragoman.base.toml_lines import line_of
from dragoman.policy.rules import DECISIONS, Decision, Rule, RuleProblem, Tier, check_written, parse_rule
from dragoman.values.errors import ConfigError, InputError
from dragoman.words import say

MAX_FILE_BYTES = 1_000_000


class _AdminFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    rules: RulesTable = RulesTable()


def rules_of_file(file: ConfigFile, values: Mapping[str, Any], tier: Tier) -> list[Rule]:
    """Raises ConfigError, naming the file, the line and the rule."""
    if "rules" not in values:
        return []
    return list(_read(file.path, file.text, msgspec.convert(values["rules"], RulesTable), tier))


def rules_of_options(options: Options) -> list[Rule]:
    """Raises InputError."""
    given: list[tuple[str, Decision, str]] = [
        *((text, "allow", "--allow") for text in options.allow),
        *((text, "deny", "--deny") for text in options.deny),
    ]
    rules: list[Rule] = []
    for text, decision, origin in given:
        try:
            rules.append(parse_rule(text, decision, origin=origin, tier="flag"))
        except RuleProblem as problem:
            raise InputError(say("rule_in_option", option=origin, rule=text, reason=problem)) from problem
    return rules


def admin_rules(path: str) -> list[Rule]:
    """The rules of an administrator's file. Raises ConfigError: an unreadable file must not leave everything allowed."""
    try:
        text = read_text(path, MAX_FILE_BYTES)
        table = msgspec.convert(tomllib.loads(text), _AdminFile).rules
    except FileProblem as problem:
        raise ConfigError(say("config_unreadable", path=path, reason=problem)) from problem
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(say("config_in", where=path, problem=say("not_toml", reason=error))) from error
    except msgspec.ValidationError as error:
        raise ConfigError(say("config_in", where=path, problem=explain(error, _AdminFile).message)) from error
    return list(_read(path, text, table, "admin"))


def _read(path: str, text: str, table: RulesTable, tier: Tier) -> Iterator[Rule]:
    for decision in DECISIONS:
        begin = line_of(text, ["rules", decision])
        for each in getattr(table, decision):
            where = _place(path, _line_with(text, each, begin))
            with _naming(where, each):
                yield parse_rule(each, decision, origin=where, tier=tier)
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.replace(" ", "").startswith("[[rules.rule]]")]
    for number, full in enumerate(table.rule):
        where = _place(path, lines[number] if number < len(lines) else line_of(text, ["rules", "rule"]))
        with _naming(where, f"{full.tool} {full.pattern}".strip()):
            yield check_written(Rule(**msgspec.structs.asdict(full), origin=where, tier=tier))


def _place(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


@contextmanager
def _naming(where: str, rule: str) -> Iterator[None]:
    try:
        yield
    except RuleProblem as problem:
        raise ConfigError(say("config_in", where=where, problem=say("rule_wrong", rule=rule, reason=problem))) from problem


def _line_with(text: str, rule: str, begin: int) -> int:
    """The line of a list's item, else of its key."""
    for number, line in enumerate(text.splitlines(), 1):
        if number >= begin and rule in line:
            return number
    return begin
