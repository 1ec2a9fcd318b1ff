"""`dragoman config`: shows every setting, its value, and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.app.approvals import approvals_for, approvals_words
from dragoman.app.config_tables import ConfigFile, ConfigSource, keys, value_of
from dragoman.app.keys import services_with_keys
from dragoman.app.options import Options
from dragoman.app.setup import Setup, catalog_of, has_server_files, may_have_hooks, set_up
from dragoman.app.surface import surface
from dragoman.base import jsontext
from dragoman.base.places import shorten_home
from dragoman.base.text import clip, strip_controls
from dragoman.base.visible import escape_hidden
from dragoman.conversation.pages.show_brought import brought_json, brought_lines, find_brought
from dragoman.providers.redact import SECRET_HEADERS, redact
from dragoman.values.errors import DragomanError
from dragoman.words import say

if TYPE_CHECKING:
    from dragoman.app.mcp_rows import ServerRow
    from dragoman.extensions.hooks.definitions import Hook

_MAX_VALUE_CHARS = 60
_BESIDE_VALUE_COLUMNS = 13
"""The blanks around a value, and the word that says where most values come from."""
_ANY_COLUMNS = 1_000


def show_config(options: Options) -> str:
    setup = set_up(options)
    catalog_of(setup)  # raises ConfigError if one of the user's deployments is invalid
    return _as_json(setup) if options.output_format == "json" else config_text(setup)


def config_text(setup: Setup) -> str:
    lines = [say("config_files")]
    lines += [
        f"  {say(f'config_{file.kind}_file'):<16} {strip_controls(shorten_home(file.path))} ({_state_words(file)})"
        for file in setup.loaded.files
    ]
    places = setup.places
    for name, path in (("config_data", places.data), ("config_cache", places.cache)):
        lines.append(f"  {say(name):<16} {strip_controls(shorten_home(path))}")
    lines += ["", say("config_values")]
    rows = [(key, _value_words(value), _source_words(setup.loaded.source(key))) for key, value in _values(setup)]
    width = max(len(key) for key, _, _ in rows)
    room = (surface().columns or _ANY_COLUMNS) - width - _BESIDE_VALUE_COLUMNS
    value_width = min(max(len(value) for _, value, _ in rows), max(min(room, 40), 8))
    lines += [f"  {key:<{width}}  {value:<{value_width}}  {source}".rstrip() for key, value, source in rows]
    if who := _who_searches(setup):
        lines += ["", say("config_search", who=strip_controls(who))]
    keys = [f"{key.service} ({key.source.words})" for key in services_with_keys(setup) if key.source is not None]
    lines += ["", say("config_keys", keys=", ".join(keys) or "-")]
    commands = say("config_commands_write" if setup.loaded.config.sandbox.run_unasked else "config_commands_ask")
    lines += ["", say("config_commands", what=commands)]
    lines += ["", say("config_approvals", words=approvals_words(setup))]
    rows, problems = _servers(setup)
    if rows or problems:
        lines += ["", f"{say('mcp_servers.config_heading')}:", *(f"  {row.line}" for row in rows), *(f"  {each}" for each in problems)]
    if setup.loaded.rules:
        lines += ["", say("config_rules")]
        lines += [escape_hidden(f"  {rule.decision:<5}  {rule.text}  ({rule.origin})", one_line=True) for rule in setup.loaded.rules]
    hooks, notices = _hooks(setup)
    if hooks or notices:
        lines += ["", say("hooks_config_title")]
        lines += [escape_hidden(f"  {hook.named}  {hook.when}  {hook.line}  ({hook.origin})", one_line=True) for hook in hooks]
    lines += [f"  {escape_hidden(each, one_line=True)}" for each in notices]
    lines += brought_lines(find_brought(setup))
    return "\n".join(lines) + "\n"


def find_problems(setup: Setup) -> tuple[str, ...]:
    """What is wrong with files that others brought, each named with its line."""
    return (*_servers(setup)[1], *_hooks(setup)[1], *find_brought(setup).problems)


def _hooks(setup: Setup) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """Hooks, and what is wrong with some."""
    if not may_have_hooks(setup):
        return (), ()
    from dragoman.app.finding_hooks import find_hooks

    found = find_hooks(setup)
    return found.hooks, found.notices


def _as_json(setup: Setup) -> str:
    values = {
        key: {"value": msgspec.to_builtins(value), "source": msgspec.to_builtins(setup.loaded.source(key))} for key, value in _values(setup)
    }
    files = [{"path": file.path, "kind": file.kind, "state": file.state} for file in setup.loaded.files]
    places = setup.places._asdict()
    hooks, hook_notices = _hooks(setup)
    servers, server_problems = _servers(setup)
    brought = find_brought(setup)
    return (
        jsontext.dumps(
            {
                "values": values,
                "files": files,
                "places": places,
                "notices": list(setup.notices),
                "rules": [msgspec.to_builtins(rule) for rule in setup.loaded.rules],
                "hooks": [{**msgspec.to_builtins(hook), "id": hook.id} for hook in hooks],
                "search": _who_searches(setup),
                "keys": {key.service: msgspec.to_builtins(key.source) for key in services_with_keys(setup) if key.source is not None},
                "mcp_servers": [row.to_json() for row in servers],
                **brought_json(brought),
                "problems": [*server_problems, *hook_notices, *brought.problems],
                "approvals": {"saved": len(approvals_for(setup.places, setup.workspace))},
            }
        )
        + "\n"
    )


def _servers(setup: Setup) -> tuple[list[ServerRow], tuple[str, ...]]:
    """MCP servers, and what is wrong with some."""
    if not has_server_files(setup):
        return [], ()
    from dragoman.app.mcp_rows import rows_of

    rows, found = rows_of(setup)
    return rows, found.problems


def _who_searches(setup: Setup) -> str:
    """Empty where it is not known: no model is configured, or one that nobody knows."""
    from dragoman.app.searching import who_searches

    try:
        return who_searches(setup, catalog_of(setup))
    except DragomanError:
        return ""


def _values(setup: Setup) -> list[tuple[str, Any]]:
    """Keys and values; the user's deployments as one value each, without secrets."""
    values = [(key, value_of(setup.config, key)) for key in keys() if key not in ("deployments", "hooks", "mcp.servers")]
    rows = [(f"deployments.{name}", _without_secrets(row)) for name, row in setup.config.deployments.items()]
    return values + rows


def _without_secrets(row: object, key: str = "") -> object:
    if key == "headers" and isinstance(row, dict):
        return dict.fromkeys(row, "REDACTED")
    if key == "key_command" and isinstance(row, list):
        return [*row[:1], *(["…"] if row[1:] else [])]
    if isinstance(row, dict):
        return {name: _without_secrets(value, name) for name, value in row.items()}
    if key.lower() in SECRET_HEADERS:
        return "REDACTED"
    return redact(row) if isinstance(row, str) else row


def _value_words(value: object) -> str:
    if value is None or value == "":
        return "-"
    text = strip_controls(jsontext.dumps(value) if not isinstance(value, str) else value).replace("\n", " ")
    return clip(text, _MAX_VALUE_CHARS)


def _source_words(source: ConfigSource) -> str:
    return say(f"config_from_{source.kind}", name=source.name)


def _state_words(file: ConfigFile) -> str:
    return say(f"config_{file.state}")
