"""The tables of docs/reference/options.md with every option and its default. `python -m checks.defaults` writes them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from pathlib import Path
from typing import Any

import msgspec

from checks.prose import MOST_CHARACTERS
from dragoman import options
from dragoman.values.messages import Settings, Thinking

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "options.md"
BEGIN, END = "<!-- defaults -->", "<!-- end of defaults -->"
GROUPS: tuple[type, ...] = (
    options.ToolOptions,
    options.WebAccess,
    options.HostRules,
    options.Sandboxing,
    options.WorkspaceOptions,
    options.ApprovalOptions,
    options.SessionOptions,
    Settings,
    Thinking,
    options.Limits,
    options.AnswerPolicy,
    options.LoopLimits,
    options.Budget,
    options.FallbackOptions,
    options.RetryPolicy,
    options.RateLimit,
    options.ContextSettings,
    options.PruneSettings,
    options.PruneRule,
    options.CompressSettings,
)


def tables() -> str:
    return "\n\n".join(map(_table, GROUPS))


def _table(group: Any) -> str:
    about = _texts(group)
    fields = zip(group.__struct_fields__, _defaults(group), strict=True)
    rows = [f"| `{name}` | {_shown(default)} | {about.get(name, '')} |" for name, default in fields]
    about_group = textwrap.fill(_sentence(inspect.getdoc(group) or ""), MOST_CHARACTERS, break_long_words=False, break_on_hyphens=False)
    return "\n".join([f"## {group.__name__}", "", about_group, "", "| option | default | |", "|---|---|---|", *rows])


def _texts(group: type) -> dict[str, str]:
    """What stands below each field in the source."""
    body = ast.parse(inspect.getsource(group)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = _one_line(text)
    return found


def _defaults(group: Any) -> list[Any]:
    """Of each field; the first ones may have none."""
    given = group.__struct_defaults__
    return [msgspec.NODEFAULT] * (len(group.__struct_fields__) - len(given)) + list(given)


def _shown(value: Any) -> str:
    if value is msgspec.NODEFAULT:
        return "required"
    value = getattr(value, "factory", value)
    if isinstance(value, type):
        value = value()
    if callable(value):
        return f"`{value.__name__}`"
    if isinstance(value, msgspec.Struct):
        return f"`{type(value).__name__}()`"
    return f"`{value!r}`".replace("|", "\\|")


def _sentence(text: str) -> str:
    return _one_line(text.split("\n\n")[0])


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def filled(page: str) -> str:
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{tables()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
