"""`output=` in every form: what it is to a type checker, and that it is so when it runs.

`make types` checks this folder with mypy and pyright.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, assert_type

import msgspec
import pydantic
import pytest

import dragoman as dm


class Struct(msgspec.Struct):
    name: str


@dataclass
class Data:
    name: str


class Table(TypedDict):
    name: str


class Row(NamedTuple):
    name: str


class Model(pydantic.BaseModel):
    name: str


class Kind(enum.Enum):
    HIGH = "high"
    LOW = "low"


def shout(name: str) -> int:
    return len(name)


async def shout_later(name: str) -> float:
    return float(len(name))


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False}


def answering(arguments: str) -> dm.testing.ScriptedProvider:
    return dm.testing.ScriptedProvider(f"call: final_answer {arguments}")


NAMED = '{"name": "Oban"}'


def test_an_agent_without_output_has_text() -> None:
    with dm.Agent(dm.testing.ScriptedProvider("text: Oban")) as agent:
        assert_type(agent, dm.Agent[None, str])
        result = agent.run_sync("Where?")
        assert_type(result, dm.Result[str])
        assert_type(result.output, str)
    assert result.output == "Oban"


def test_an_agent_has_the_type_that_it_was_given() -> None:
    with dm.Agent(answering(NAMED), output=Struct) as structs:
        assert_type(structs, dm.Agent[None, Struct])
        assert assert_type(structs.run_sync("Where?").output, Struct) == Struct("Oban")
    with dm.Agent(answering(NAMED), output=Data) as datas:
        assert_type(datas, dm.Agent[None, Data])
        assert assert_type(datas.run_sync("Where?").output, Data) == Data("Oban")
    with dm.Agent(answering(NAMED), output=Table) as tables:
        assert_type(tables, dm.Agent[None, Table])
        assert assert_type(tables.run_sync("Where?").output, Table) == {"name": "Oban"}
    with dm.Agent(answering(NAMED), output=Model) as models:
        assert_type(models, dm.Agent[None, Model])
        assert assert_type(models.run_sync("Where?").output, Model) == Model(name="Oban")
    with dm.Agent(answering(NAMED), output=shout) as numbers:
        assert_type(numbers, dm.Agent[None, int])
        assert assert_type(numbers.run_sync("Where?").output, int) == 4
    with dm.Agent(answering(NAMED), output=shout_later) as floats:
        assert_type(floats, dm.Agent[None, float])
        assert assert_type(floats.run_sync("Where?").output, float) == 4.0


def test_a_union_and_a_schema_are_what_they_are_declared_to_be() -> None:
    with dm.Agent(answering(NAMED)) as agent:
        schema = agent.run_sync("Where?", output=SCHEMA)
        assert_type(schema, dm.Result[Any])
        assert schema.output == {"name": "Oban"}
    with dm.Agent(dm.testing.ScriptedProvider(f"call: final_answer_1 {NAMED}")) as agent:
        either: dm.Result[Struct | Data] = agent.run_sync("Where?", output=Struct | Data)
        assert either.output.name == "Oban"
    with dm.Agent(answering(NAMED), output=SCHEMA) as anything:
        assert_type(anything, dm.Agent[None, Any])


@pytest.mark.filterwarnings("ignore:a run was never begun:RuntimeWarning")
def test_a_run_has_an_output_of_its_own() -> None:
    agent = dm.Agent(dm.testing.ScriptedProvider(""), output=Struct)
    assert_type(agent.run("Where?"), dm.Run[Struct])
    assert_type(agent.run("Where?", output=Data), dm.Run[Data])
    assert_type(agent.run("Where?", output=Table), dm.Run[Table])
    assert_type(agent.run("Where?", output=Row), dm.Run[Row])
    assert_type(agent.run("Where?", output=Model), dm.Run[Model])
    assert_type(agent.run("Where?", output=Kind), dm.Run[Kind])
    assert_type(agent.run("Where?", output=str), dm.Run[str])
    assert_type(agent.run("Where?", output=int), dm.Run[int])
    assert_type(agent.run("Where?", output=bool), dm.Run[bool])
    assert_type(agent.run("Where?", output=list[str]), dm.Run[list[str]])
    assert_type(agent.run("Where?", output=dict[str, Struct]), dm.Run[dict[str, Struct]])
    assert_type(agent.run("Where?", output=shout), dm.Run[int])
    assert_type(agent.run("Where?", output=shout_later), dm.Run[float])
    assert_type(agent.run("Where?", output=Struct | Data), dm.Run[Any])
    assert_type(agent.run("Where?", output=SCHEMA), dm.Run[Any])
    agent.close()


def test_checks_take_the_output() -> None:
    with dm.Agent(answering(NAMED), output=Struct) as agent:

        @agent.check
        def is_short(value: Struct) -> None:
            if len(value.name) > 10:
                raise ValueError("shorter")

        @agent.check
        async def in_capitals(value: Struct) -> Struct:
            return Struct(value.name.upper())

        assert agent.run_sync("Where?").output == Struct("OBAN")
        is_short(Struct("Oban"))  # a decorated function is still its own
