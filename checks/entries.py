"""docs/reference/entries.md: what stands in a session's file. `python -m checks.marked entries` writes it."""

from __future__ import annotations

import typing
from typing import Any

from checks.marked import REFERENCE, Part, docstring, fields_table, table, words_table
from dragoman.values import messages, record, usage

FOLDS: dict[str, str] = {
    "view": "the messages that the model sees",
    "cache": "what the service's prompt cache holds",
    "savings": "what pruning has saved",
    "costs": "what the session has cost",
    "left_out": "what is no longer in the view",
    "path": "how the view came about (`dragoman context`)",
    "undo": "which changes to files can be undone",
    "blobs": "which stored bytes are still needed",
    "runs": "how the session's last run ended, or that it is under way",
    "summary": "the session's line in a list",
    "transcript": "what a person saw (`sessions show`, `export`, the browser)",
}
"""In the order of `record.Fold`, which names them; a test compares the two."""
INSIDE: tuple[type, ...] = (
    *(messages.Message, messages.Text, messages.Thought, messages.ToolCall, messages.ToolResult, messages.Blob, messages.FileRef),
    *(messages.Citation, messages.ToolSpec, messages.Settings, record.CommandOutput, record.HostsUsed, record.FileChange, usage.Usage),
)
"""What the fields of entries hold."""


def overview() -> str:
    rows = [(f"[`{_tag(kind)}`](#{_tag(kind)})", ", ".join(f"`{each}`" for each in _readers(kind)) or "nobody") for kind in _kinds()]
    readers = table(("reader", "what it makes of the entries"), [(f"`{name}`", about) for name, about in FOLDS.items()])
    return f"{readers}\n\n" + table(("`kind`", "read by"), rows)


def entries() -> str:
    return "\n\n".join(f"## {_tag(kind)}\n\n{_body(kind)}" for kind in _kinds())


def inside() -> str:
    return "\n\n".join(f"### {kind.__name__}\n\n{_body(kind)}" for kind in INSIDE)


def words() -> str:
    return words_table(
        Speaker=record.Speaker,
        About=record.About,
        WaitsFor=record.WaitsFor,
        ToolOutcome=record.ToolOutcome,
        NoSummary=record.NoSummary,
        FinishReason=messages.FinishReason,
    )


def _body(kind: Any) -> str:
    return "\n\n".join(filter(None, (docstring(kind), fields_table(kind))))


def _kinds() -> tuple[Any, ...]:
    return typing.get_args(record.Entry)


def _tag(kind: Any) -> str:
    return str(kind.__struct_config__.tag)


def _readers(kind: Any) -> list[str]:
    return [name for name in FOLDS if name in kind.read_by]


MAKERS = {"readers": overview, "entries": entries, "inside entries": inside, "words of entries": words}
PARTS = tuple(Part(REFERENCE / "entries.md", mark, make) for mark, make in MAKERS.items())
