"""The walls that `loop/` is still to get: what goes upward in the plan, not yet in the tree, each with its reason. The list only shrinks.

In the plan `loop/` parts into four rooms: the turn itself, `coding/` and `telemetry/` on it, and `agent/` above, which an embedder holds.
`PLANNED` says where each module goes; tests/test_imports.py has the walls that stand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "dragoman" / "loop"

HEIGHT = {"loop": 0, "coding": 1, "telemetry": 1, "agent": 2}
"""A room may import those below it, and not one beside it."""
PLANNED: Mapping[str, str] = {
    **dict.fromkeys(("commands", "gating", "memory", "search_model", "surroundings", "web"), "coding"),
    **dict.fromkeys(("run_log", "trace_content", "trace_switch", "traced_requests", "tracing"), "telemetry"),
    **dict.fromkeys(
        (
            "agent",
            "agent_signature",
            "assembly",
            "background",
            "call_scheduler",
            "chat",
            "chat_turn",
            "coding",
            "conversation",
            "handing_over",
            "initial_history",
            "mcp_calls",
            "mcp_servers",
            "option_checks",
            "outside_calls",
            "requesting",
            "searching",
            "subagents",
            "tasks",
        ),
        "agent",
    ),
}
"""Modules of loop/ that leave it; the others stay."""
LEFT: Mapping[str, str] = {
    "configuring -> web": "the search becomes a part that offers its tools when a configuration is put together",
    "handle -> run_log": "log lines become a part that observes a run, as spans do",
    "harness -> commands": "the harness makes them; `agent/definition.py` will, and hand them to the loop",
    "harness -> surroundings": "as above",
    "harness -> web": "as above",
    "run -> handing_over": "handing over becomes a part of a run",
    "session -> surroundings": "the system's folder for temporary files, told to the model there: it moves down",
    "trace_switch -> agent": "traces are switched on for one agent; the room above will pass what traces it",
}
"""What is left to cut, and how it will be: by the parts of the loop, which are not built yet."""


def modules() -> dict[str, str]:
    return {path.stem: path.read_text(encoding="utf-8") for path in SOURCE.glob("*.py") if path.stem != "__init__"}


def upward(sources: Mapping[str, str], planned: Mapping[str, str]) -> Iterator[str]:
    """`importer -> imported`, where the room of one is not above that of the other."""
    for name, source in sources.items():
        here = planned.get(name, "loop")
        for target in sorted({*imported(source)} & {*sources}):
            there = planned.get(target, "loop")
            if there != here and HEIGHT[there] >= HEIGHT[here]:
                yield f"{name} -> {target}"


def imported(source: str) -> Iterator[str]:
    """Modules of loop/ that one imports, for its types and within functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "dragoman.loop":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dragoman.loop."):
            yield str(node.module).removeprefix("dragoman.loop.")


def test_a_module_that_leaves_is_there() -> None:
    assert sorted(set(PLANNED) - set(modules())) == []


def test_what_goes_upward_in_the_plan_only_grows_less() -> None:
    found = set(upward(modules(), PLANNED))
    assert sorted(found - set(LEFT)) == [], "cut it before loop/ parts: turn the import round, or move down what is needed"
    assert sorted(set(LEFT) - found) == [], "cut: take it out of LEFT"


def test_an_upward_import_is_found_wherever_it_stands() -> None:
    sources = {
        "turn": "def ask():\n    from dragoman.loop.web import search",
        "web": "from dragoman.loop import turn\nfrom dragoman.loop.tracing import span",
        "agent": "from dragoman.loop.web import search",
        "tracing": "if TYPE_CHECKING:\n    from dragoman.loop.agent import Agent",
    }
    assert [*upward(sources, PLANNED)] == ["turn -> web", "web -> tracing", "tracing -> agent"]
