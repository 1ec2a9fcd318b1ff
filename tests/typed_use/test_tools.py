"""Tools and approvals: what a decorated function, a plain one and a tool of one's own are to type checkers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, assert_type

import msgspec

import dragoman as dm
from dragoman.contracts import Show


class Harbour(msgspec.Struct):
    name: str


@dm.tool
def depth(harbour: Harbour, berth: int = 1) -> float:
    """How deep a berth is."""
    return float(len(harbour.name) + berth)


@dm.tool(read_only=True, name="high_water")
async def tides(harbour: Annotated[str, "its name"], kind: Literal["high", "low"] = "high") -> list[str]:
    """When the tide is high."""
    return [harbour, kind]


@dm.tool(kind="execute", polled=True)
def sink(ship: str, show: Show) -> str:
    """Sink a ship."""
    show("going down")
    return f"{ship} is sunk"


def plain(ship: str) -> str:
    """Where a ship is."""
    return f"{ship} is at sea"


class Own:
    """Anything with these three is a tool."""

    @property
    def spec(self) -> dm.ToolSpec:
        return dm.ToolSpec("own", "Something of one's own.", '{"type":"object"}')

    def intend(self, args: Mapping[str, Any]) -> dm.Intent:
        return dm.Intent(f"own {len(args)}")

    async def run(self, args: Mapping[str, Any], show: Show) -> dm.ToolOutput:
        return dm.ToolOutput((dm.Text("done"),))


SCRIPT = """
call: depth {"harbour": {"name": "Oban"}, "berth": 2}
call: high_water {"harbour": "Oban"}
call: plain {"ship": "Halcyon"}
call: sink {"ship": "Halcyon"}
call: own {}
---
text: done
"""


def test_a_tool_is_still_the_function_it_was() -> None:
    assert_type(depth(Harbour("Oban")), float)
    assert_type(depth(Harbour("Oban"), berth=2), float)
    assert_type(depth.spec, dm.ToolSpec)
    as_tool: dm.Tool = tides
    assert as_tool.spec.name == "high_water"
    assert depth(Harbour("Oban"), 2) == 6.0


async def awaited() -> list[str]:
    return assert_type(await tides("Oban", kind="low"), list[str])


def test_tools_of_every_kind_run_and_are_approved() -> None:
    asked: list[str] = []

    def ask(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow | dm.Deny:
        asked.append(assert_type(intent.title, str))
        return dm.Allow(arguments='{"ship": "Wreck"}', remember="session") if call.name == "sink" else dm.Allow()

    own: dm.Tool = Own()
    approval = dm.ApprovalOptions("default", ask)
    with dm.Agent(dm.testing.ScriptedProvider(SCRIPT), tools=[depth, tides, plain, sink, own], approval=approval) as agent:
        assert_type(agent, dm.Agent[None, str])
        assert agent.run_sync("Go").tool_failures == 0
    called = dm.testing.calls(agent)
    assert_type(called, list[dm.testing.Called])
    assert [each.text.splitlines()[-1] for each in called][-2:] == ["Wreck is sunk", "done"]
    assert asked == ['sink(ship="Halcyon")', "own 0"]  # a function runs unasked unless it says what it does; other tools are asked about


async def ask_later(call: dm.ToolCall, intent: dm.Intent) -> dm.Allow | dm.Deny:
    return dm.Deny(f"{call.name}: {intent.preview}")


plan: dm.ApprovalOptions = dm.ApprovalOptions("auto-edit", ask_later)
ask: dm.Ask = ask_later
