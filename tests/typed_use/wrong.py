"""Lines that must be errors to type checkers. `make types` fails where mypy or pyright lets one marked `# wrong` pass, or refuses another.

Nothing runs this.
"""

from __future__ import annotations

from dataclasses import dataclass

import dragoman as dm
from dragoman.errors import BudgetExceded  # wrong: misspelt
from dragoman.options import Account, Budget
from dragoman.testing import ScriptedProvidr  # wrong: misspelt


@dataclass
class Harbour:
    name: str


@dm.tool
def depth(harbour: str, berth: int = 1) -> float:
    """How deep a berth is."""
    return 1.0


@dm.tool(readonly=True)  # wrong: it is read_only
def tides(harbour: str) -> str:
    """When the tide is high."""
    return harbour


def names() -> None:
    dm.Agnet("gemini")  # wrong: misspelt
    dm.errors.NotThere()  # wrong: no such error
    dm.testing.Loopbak()  # wrong: misspelt
    dm.events.TextDelt  # wrong: misspelt
    dm.import_module("os")  # wrong: what we import is not ours to give


def agents(agent: dm.Agent[None, Harbour]) -> None:
    dm.Agent()  # wrong: no model
    dm.Agent(1)  # wrong: not a model
    dm.Agent("gemini", sistem="Be brief.")  # wrong: misspelt
    dm.Agent("gemini", system=1)  # wrong: not a text
    dm.Agent("gemini", approval="always")  # wrong: no such mode
    dm.Agent("gemini", tools=[1])  # wrong: not a tool
    dm.Agent("gemini", limits=Budget(usd=1))  # wrong: not limits
    dm.Agent("gemini", budget=1)  # wrong: not a budget
    dm.Agent("gemini", output=Harbour).run_sync("Where?").output.depth_m  # wrong: no such field
    wrong: dm.Agent[None, int] = agent  # wrong: another type
    right: dm.Agent[None, Harbour] = dm.Agent("gemini", output=Harbour)
    agent.settings = None  # wrong: settings are never None
    agent.model = "other"  # wrong: change_model changes it
    print(wrong, right)


async def runs(agent: dm.Agent[None, Harbour]) -> None:
    (await agent.run("Where?")).output.upper()  # wrong: not a text
    (await agent.run("Where?", output=int)).output.name  # wrong: an int
    number: int = agent.run_sync("Where?").output  # wrong: not an int
    texts: list[int] = agent.run_sync("Where?", output=list[str]).output  # wrong: texts
    agent.run("Where?", outptu=int)  # wrong: misspelt
    agent.run("Where?", budget=0.10)  # wrong: not a budget
    agent.run_sync("Where?", search="web")  # wrong: of run alone
    agent.run(1)  # wrong: not a prompt
    agent.run("Where?").result.txt  # wrong: misspelt
    async for event in agent.run("Where?"):
        event.text  # wrong: not every event has one
    for _ in agent.stream_sync("Where?", max_turns=1):  # wrong: of the agent's limits
        pass
    print(number, texts)


def is_long(value: str) -> None: ...


def checks(agent: dm.Agent[None, Harbour]) -> None:
    agent.check(is_long)  # wrong: a Harbour comes


def tools() -> None:
    depth(1)  # wrong: not a text
    depth("Oban", bert=2)  # wrong: misspelt
    depth("Oban").upper()  # wrong: a float
    dm.ToolOptions([depth], builtin=1)  # wrong: not a choice
    dm.ApprovalOptions("default", lambda: dm.Allow())  # wrong: it is given the call
    dm.ApprovalOptions(ask=is_long)  # wrong: it answers nothing
    dm.Allow(remember="always")  # wrong: not a choice
    dm.Deny()  # wrong: no reason


def values(message: dm.Message, event: dm.TextDelta) -> None:
    Budget(1.0)  # wrong: by name only
    Budget(usd="1")  # wrong: not a number
    Account(1.0)  # wrong: not a budget
    dm.Settings(temprature=1)  # wrong: misspelt
    dm.Limits(max_turns="3")  # wrong: not a number
    dm.SessionOptions(resume=1)  # wrong: not a name
    message.role = "user"  # wrong: frozen
    event.text = ""  # wrong: frozen
    dm.Text(1)  # wrong: not a text
    dm.testing.Loopback().connect(1)  # wrong: not a model
    dm.testing.assert_valid("Hello")  # wrong: not a request
