"""The tables of docs/reference/configuration.md, made of the Structs of app/config_tables.py.

`python -m checks.configuration` writes them.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from dragoman.app.config import FLAGS, FOR_PROJECTS, PLAIN_VARIABLE, VARIABLES
from dragoman.app.config_tables import Config
from dragoman.tui.bindings import ACTIONS, KEYS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "configuration.md"
BEGIN, END = "<!-- generated -->", "<!-- end of generated -->"
MORE = MappingProxyType(
    {
        "": "[services of your own](../configure/configuration.md#services-of-your-own),\n[modes](../configure/modes.md)",
        "retry": "[models](../use/models.md)",
        "tools": "[secrets](../configure/secrets.md)",
        "text_tools": "[text tools](../inside/text-tools.md)",
        "web": "[web](../use/web.md)",
        "http": "[models](../use/models.md)",
        "local": "[local models](../use/local.md)",
        "sandbox": "[the sandbox](../configure/sandbox.md)",
        "sessions": "[sessions](../use/sessions.md)",
        "context.prune": "[context](../use/context.md)",
        "context.compress": "[context](../use/context.md)",
        "rules": "[rules](../configure/rules.md)",
        "other_rules": "[rules of other programs](../configure/other-rules.md)",
        "network": "[network](../configure/network.md)",
        "plugins": "[hooks](../extend/hooks.md)",
        "mcp": "[MCP](../extend/mcp.md)",
    }
)
"""Table → the pages that explain it."""
_KINDS = MappingProxyType({str: "text", bool: "`true`, `false`", int: "whole number", float: "number"})


def generated() -> str:
    return "\n\n".join([*_tables(Config, ""), _variables(), _keys()])


def _tables(table: type[msgspec.Struct], prefix: str) -> Iterator[str]:
    """A table, then those in it."""
    about = _texts(table)
    rows: list[str] = []
    inner: list[str] = []
    for field in msgspec.structs.fields(table):
        key = f"{prefix}{field.encode_name}"
        if isinstance(field.default, msgspec.Struct):
            inner += _tables(type(field.default), f"{key}.")
        else:
            rows.append(f"| `{key}` | {_kind(field.type)} | {_shown(field.default)} | {_who(key)} | {about[field.encode_name]} |")
    if rows:
        name = prefix.removesuffix(".")
        more = [f"More: {MORE[name]}."] if MORE.get(name) else []
        about_table = [_one_line(inspect.getdoc(table) or "")] if name else []
        head = "\n".join([f"## `{name}`" if name else "## At the top", "", *about_table, *more])
        yield "\n".join([head, "", "| key | kind | default | project | what it does |", "|---|---|---|---|---|", *rows])
    yield from inner


def _texts(table: type) -> dict[str, str]:
    """What stands below each field in the source."""
    body = ast.parse(inspect.getsource(table)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = _one_line(text)
    return found


def _kind(annotation: Any) -> str:
    if get_origin(annotation) is Annotated:
        inner, meta = get_args(annotation)[:2]
        return _kind(inner) + _range(meta)
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{value}`" if value != "" else "empty" for value in get_args(annotation))
    if get_origin(annotation) is tuple:
        return "list of text" if get_args(annotation)[0] is str else "tables"
    if isinstance(annotation, UnionType) or get_origin(annotation) is Union:
        return _kind(get_args(annotation)[0])
    return _KINDS.get(annotation, "table")


def _range(meta: msgspec.Meta) -> str:
    if isinstance(meta.gt, int | float):
        return f", more than {meta.gt}"
    if meta.max_length:
        return f", up to {meta.max_length} characters"
    assert meta.ge is not None
    assert meta.le is not None
    return f", {meta.ge:,} – {meta.le:,}" if meta.le < 1_000_000_000 else f", from {meta.ge}"


def _shown(value: Any) -> str:
    return "" if value in ("", None, {}, msgspec.NODEFAULT) else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _who(key: str) -> str:
    return "yes" if any(key == allowed or key.startswith(f"{allowed}.") for allowed in FOR_PROJECTS) else "no"


def _variables() -> str:
    by_key = {key: (name, FLAGS.get(key, "")) for name, key in VARIABLES.items()}
    rows = [f"| `{name}` | {f'`{flag}`' if flag else ''} | `{key}` |" for key, (name, flag) in by_key.items()]
    rows += [f"| `{PLAIN_VARIABLE}=plain` | | `ui.mode` |", "| `NO_COLOR` | `--no-color` | `color` |"]
    rows += ["| | `--sandbox` | `sandbox.level` |", "| | `--search` | `web.search` |", "| | `--text-tools` | `text_tools.mode` |"]
    rows += ["| | `--allow` | `rules.allow` |", "| | `--deny` | `rules.deny` |"]
    return "\n".join(["## Variables and flags", "", "| variable | flag | key |", "|---|---|---|", *rows])


def _keys() -> str:
    rows = [f"| `{key}` | `{action}` |" for key, action in KEYS.items()]
    free = ", ".join(f"`{each}`" for each in ACTIONS if each not in KEYS.values())
    unbound = textwrap.fill(f"Actions that have no key here: {free}.", 110)
    return "\n".join(["## Keys of the conversation", "", unbound, "", "| key | action |", "|---|---|", *rows])


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def filled(page: str) -> str:
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{generated()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
